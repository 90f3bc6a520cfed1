import t from 'tap'
import { slopeOf } from './slope.ts'

await t.test('the slope of a line, and of what lies around one', async (t) => {
  t.equal(
    slopeOf([
      [0, 5],
      [10, 25],
    ]),
    2,
  )
  t.equal(
    slopeOf([
      [0, 1],
      [1, 3],
      [2, 1],
    ]),
    0,
  )
})

import t from 'tap'
import { slopeOf } from './slope.ts'

const points = (...ys: number[]) => ys.map((y, x) => [x, y] as const)

await t.test('the slope of a line, and of what lies around one', async (t) => {
  t.equal(slopeOf(points(5, 7)), 2)
  t.equal(slopeOf(points(1, 3, 1)), 0)
})

import * as fc from 'fast-check'
import t from 'tap'
import { countCharacters, cutToWidth, fitText, toColumns } from './text-table.ts'

await t.test('`fitText` gives every text the width of its column, emoji too', async (t) => {
  t.equal(fitText('🙂🙂', 4), '🙂🙂  ')
  t.equal(fitText('🙂🙂🙂', 2), '🙂…')
  const text = fc.string({ unit: 'binary' })
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 40 }), (one, width) => {
      return (
        countCharacters(fitText(one, width)) === width &&
        countCharacters(cutToWidth(one, width)) <= width
      )
    }),
    { numRuns: 200 },
  )
})

await t.test('`toColumns` sets texts flush right', async (t) => {
  t.equal(toColumns(['a', 'bcd'], 3), '  abcd')
})

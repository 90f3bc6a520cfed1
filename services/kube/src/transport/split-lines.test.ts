import { array, assert, boolean, nat, property, string } from 'fast-check'
import t from 'tap'
import { createLineSplitter } from './split-lines.ts'

/** Cuts bytes at these places. */
function pieces(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].toSorted((a, b) => a - b)
  return [0, ...at].map((from, i) => bytes.subarray(from, at[i] ?? bytes.length))
}

await t.test('whatever the pieces, the lines are those of the text', async (t) => {
  const line = string({ unit: 'grapheme', maxLength: 30 }).map((text) =>
    text.replaceAll(/\s/g, '_'),
  )
  assert(
    property(
      array(line, { maxLength: 20 }),
      array(nat(2000), { maxLength: 40 }),
      boolean(),
      (lines, cuts, isEnded) => {
        const bytes = Buffer.from(lines.join('\n') + (isEnded ? '\n' : ''))
        const splitter = createLineSplitter()
        const got = pieces(bytes, cuts).flatMap((piece) => splitter.push(piece))
        const rest = splitter.end()
        if (rest !== undefined) got.push(rest)
        t.strictSame(
          got,
          lines.filter((text) => text !== ''),
        )
        return true
      },
    ),
    { numRuns: 300 },
  )
})

await t.test('a line without an end is refused before it fills the memory', async (t) => {
  const splitter = createLineSplitter(10)
  t.same(splitter.push(Buffer.from('0123456789\n01234')), ['0123456789'])
  t.throws(() => splitter.push(Buffer.from('567890')), /more than 10 bytes/)
  t.throws(() => createLineSplitter(3).push(Buffer.from('abcd\n')), /more than 3 bytes/)
})

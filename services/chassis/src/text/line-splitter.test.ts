import { array, assert, boolean, nat, property, string } from 'fast-check'
import t from 'tap'
import { LineSplitter } from './line-splitter.ts'

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
        const got: string[] = []
        const splitter = new LineSplitter(10_000, { onLine: (text) => got.push(text) })
        for (const piece of pieces(bytes, cuts)) splitter.push(piece)
        splitter.flush()
        // A last line that is empty and has no end is none.
        const all = bytes.toString().split('\n')
        t.strictSame(got, all.at(-1) === '' ? all.slice(0, -1) : all)
        return true
      },
    ),
    { numRuns: 300 },
  )
})

await t.test('lines are the same however they come, and cut where they are too long', async (t) => {
  for (const size of [1, 3, 100]) {
    const lines: string[] = []
    const splitter = new LineSplitter(4, { onLine: (line) => lines.push(line) })
    const text = Buffer.from('ab\r\n\nabcdef\nlast')
    for (let at = 0; at < text.length; at += size) splitter.push(text.subarray(at, at + size))
    splitter.flush()
    t.strictSame(lines, ['ab', '', 'abcd', 'last'], `pieces of ${size} bytes`)
  }
})

await t.test('lines that are not wanted are counted, also one that began before', async (t) => {
  const lines: string[] = []
  let [capacity, dropped] = [2, 0]
  const splitter = new LineSplitter(100, {
    isWanted: () => capacity > 0,
    onLine: (line) => {
      capacity -= 1
      lines.push(line)
    },
    onDropped: (count) => {
      dropped += count
    },
  })
  splitter.push(Buffer.from('one\ntwo\nthree\nfour\nfi'))
  t.strictSame([lines, dropped], [['one', 'two'], 2])
  capacity = 1
  splitter.push(Buffer.from('ve\nsix'))
  splitter.push(Buffer.from('th\nseven'))
  t.strictSame([lines, dropped], [['one', 'two', 'five'], 3])
  capacity = 1
  splitter.push(Buffer.from('th\n'))
  t.strictSame(lines, ['one', 'two', 'five', 'seventh'])
})

await t.test('of a flood, nothing is asked and made for each line', async (t) => {
  let [asked, dropped] = [0, 0]
  const splitter = new LineSplitter(100, {
    isWanted: () => {
      asked += 1
      return false
    },
    onLine: () => t.fail('a line was made'),
    onDropped: (count) => {
      dropped += count
    },
  })
  splitter.push(Buffer.alloc(65_536, 'y\n'))
  t.strictSame([asked, dropped], [1, 32_768])
})

await t.test('a line that is too long can be refused before it fills the memory', async (t) => {
  const lines: string[] = []
  const splitter = new LineSplitter(10, {
    onLine: (line) => lines.push(line),
    onTooLong: () => {
      throw new Error('too long')
    },
  })
  splitter.push(Buffer.from('0123456789\n01234'))
  t.same(lines, ['0123456789'])
  t.throws(() => splitter.push(Buffer.from('567890')), /too long/)
})

import t from 'tap'
import { LineSplitter } from './line-splitter.ts'

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

await t.test('lines that nobody wants are counted, also one that began before', async (t) => {
  const lines: string[] = []
  let [room, dropped] = [2, 0]
  const splitter = new LineSplitter(100, {
    isWanted: () => room > 0,
    onLine: (line) => {
      room -= 1
      lines.push(line)
    },
    onDropped: (count) => {
      dropped += count
    },
  })
  splitter.push(Buffer.from('one\ntwo\nthree\nfour\nfi'))
  t.strictSame([lines, dropped], [['one', 'two'], 2])
  room = 1
  splitter.push(Buffer.from('ve\nsix'))
  splitter.push(Buffer.from('th\nseven'))
  t.strictSame([lines, dropped], [['one', 'two', 'five'], 3])
  room = 1
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

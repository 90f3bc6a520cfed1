import * as fc from 'fast-check'
import t from 'tap'
import { StatusLine } from '../terminal/status-line.ts'
import { createManualClock } from '../testing/manual-clock.ts'
import { TransferProgress } from './transfer-progress.ts'

/** @param columns - of a terminal; there is none if absent. */
function rig(columns?: number) {
  const clock = createManualClock()
  const drawn: string[] = []
  const told: unknown[] = []
  const statusLine =
    columns === undefined
      ? undefined
      : new StatusLine({ columns, write: (text) => void drawn.push(text) })
  const log = { info: (message: string, fields = {}) => void told.push({ message, ...fields }) }
  const progress = new TransferProgress({ statusLine, log, clock })
  return { clock, drawn, told, progress }
}

const CLEAR = '\r\u001b[K'
/** Finds the text that a drawing shows. */
const shown = (text = ''): string =>
  text.replace(CLEAR, '').replace('\u001b[?7l', '').replace('\u001b[?7h', '')

await t.test('on a terminal a bar, which goes at the end', async (t) => {
  const { clock, drawn, told, progress } = rig(80)
  const transfer = progress.open('https://models.example/a/m.tar')
  clock.advance(1000)
  t.same(drawn, [], 'nothing before the server has answered')
  transfer.begin({ bytes: 0, totalBytes: 3_000_000 })
  transfer.add(1_500_000)
  clock.advance(200)
  transfer.add(300_000)
  clock.advance(800)
  t.equal(shown(drawn[0]), '[##########----------]  50 %  1.50 MB of 3.00 MB, 7.50 MB/s  m.tar')
  t.equal(shown(drawn[4]), '[############--------]  60 %  1.80 MB of 3.00 MB, 1.80 MB/s  m.tar')
  transfer.begin({ bytes: 2_000_000 })
  clock.advance(6000)
  t.equal(shown(drawn.at(-1)), '2.00 MB, 0 B/s  m.tar', 'bytes of earlier attempts have no rate')
  t.same(told, [])
  transfer.end(true)
  t.equal(drawn.at(-1), CLEAR)
  const end = { message: 'transfer ended', uri: 'https://models.example/a/m.tar', bytes: 1_800_000 }
  t.same(told, [{ ...end, durationMs: 8000, bytesPerSecond: 225_000 }])
  t.equal(clock.pending, 0)
})

await t.test('without one a line every 5 s and at the end, and none for what failed', async (t) => {
  const { clock, told, progress } = rig()
  const [one, two] = [progress.open('one'), progress.open('two')]
  one.begin({ bytes: 0, totalBytes: 10 })
  for (let second = 0; second < 10; second++) {
    one.add(1)
    clock.advance(1000)
  }
  const line = { message: 'fetching', uris: ['one'], totalBytes: 10, bytesPerSecond: 1 }
  t.same(told, [
    { ...line, bytes: 5 },
    { ...line, bytes: 10 },
  ])
  two.begin({ bytes: 0, totalBytes: 90 })
  one.end(false)
  two.add(80)
  clock.advance(5000)
  t.same(told.slice(2), [
    { ...line, uris: ['two'], bytes: 90, totalBytes: 100, bytesPerSecond: 16 },
  ])
  two.end(true)
  t.match(told[3], { message: 'transfer ended', uri: 'two', bytes: 80, durationMs: 15_000 })
  t.equal(clock.pending, 0)
  const unasked = progress.open('unchanged')
  unasked.end(true)
  t.equal(told.length, 4, 'nothing came')
})

await t.test('many transfers share one line', async (t) => {
  const { clock, told, progress } = rig()
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  const open = names.map((name) => progress.open(name))
  for (const transfer of open) transfer.begin({ bytes: 0 })
  clock.advance(5000)
  const line = { message: 'fetching', uris: ['a', 'b', 'c', 'd'], more: 2, bytes: 0 }
  t.same(told, [{ ...line, bytesPerSecond: 0 }])
  const terminal = rig(80)
  for (const name of names) terminal.progress.open(name).begin({ bytes: 0, totalBytes: 1 })
  terminal.clock.advance(200)
  t.match(shown(terminal.drawn[0]), / 0 B of 6 B, 0 B\/s {2}a and 5 more$/)
})

await t.test(
  'whatever comes, a line fits the terminal and holds nothing that it obeys',
  async () => {
    const size = fc.integer({ min: 0, max: 2 ** 50 })
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        fc.integer({ min: 1, max: 200 }),
        fc.array(size, { maxLength: 5 }),
        fc.option(size, { nil: undefined }),
        (what, columns, parts, totalBytes) => {
          const { clock, drawn, progress } = rig(columns)
          const transfer = progress.open(what)
          transfer.begin({ bytes: 0, totalBytes })
          for (const part of parts) {
            transfer.add(part)
            clock.advance(200)
          }
          return (
            drawn.length === parts.length &&
            drawn.every((text) => {
              const line = shown(text)
              return line.length < columns && !/[\p{Cc}\p{Cf}]|NaN|undefined|Infinity/u.test(line)
            })
          )
        },
      ),
      { numRuns: 100 },
    )
  },
)

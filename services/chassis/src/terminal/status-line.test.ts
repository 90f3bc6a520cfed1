import t from 'tap'
import { processEnvironment } from '../executable/process-environment.ts'
import { createLogger } from '../log/log.ts'
import { createManualClock } from '../testing/manual-clock.ts'
import { showElapsed } from './show-elapsed.ts'
import { StatusLine } from './status-line.ts'

const CLEAR = '\r\u001b[K'

/** A terminal for standard output and error, and the texts that were written to it. */
function terminal(TERM: string | undefined, isTTY = true) {
  const written: string[] = []
  const stream = { isTTY, columns: 80, write: (text: string) => void written.push(text) }
  const process = { on: () => {}, off: () => {}, stdout: stream, stderr: stream }
  const environment = processEnvironment({ ...process, env: { ...(TERM && { TERM }) } })
  return { written, environment }
}

await t.test('there is a line on terminals that obey', async (t) => {
  t.ok(terminal('xterm').environment.statusLine)
  t.notOk(terminal('dumb').environment.statusLine)
  t.notOk(terminal(undefined).environment.statusLine)
  t.notOk(terminal('xterm', false).environment.statusLine)
})

await t.test('it makes way for other lines, and is drawn again below them', async (t) => {
  const { written, environment } = terminal('xterm')
  const { statusLine } = environment
  const one = {}
  statusLine?.show(one, 'first\u001b[31m')
  t.match(written.pop(), 'first\\u001b[31m')
  const destination = { write: (line: string) => environment.out(line) }
  const log = createLogger({ name: 'test', destination, statusLine })
  log.info('a line')
  environment.err('another\n')
  t.match(written, [CLEAR, /"a line"/, 'another\n'])
  statusLine?.show(one, 'first')
  statusLine?.show({}, 'second')
  t.equal(written.at(-1), `${CLEAR}\u001b[?7lfirst | second\u001b[?7h`)
  environment.out('out\n')
  t.same(written.slice(-2), [CLEAR, 'out\n'])
  statusLine?.hide(one)
  t.equal(written.at(-1), 'out\n', 'it is cleared already')
})

await t.test('`showElapsed` draws the time that has passed each second', async (t) => {
  const drawn: string[] = []
  const statusLine = new StatusLine({ columns: 80, write: (text) => void drawn.push(text) })
  const clock = createManualClock()
  const told: number[] = []
  const common = { what: 'Making', clock, tell: (ms: number) => void told.push(ms) }
  let detail = ''
  const stop = showElapsed({ ...common, statusLine, detail: () => detail })
  clock.advance(1000)
  detail = 'Collecting numpy'
  clock.advance(1000)
  t.match(drawn, [
    `${CLEAR}\u001b[?7lMaking: 1 s\u001b[?7h`,
    `${CLEAR}\u001b[?7lMaking: 2 s  Collecting numpy\u001b[?7h`,
  ])
  stop()
  t.equal(drawn.at(-1), CLEAR)
  const stopTelling = showElapsed({ ...common, detail: () => '' })
  clock.advance(25_000)
  t.same(told, [10_000, 20_000])
  stopTelling()
  t.equal(clock.pending, 0)
})

import t from 'tap'
import { createManualClock } from '../testing/manual-clock.ts'
import { createLogger } from './log.ts'
import { logServing } from './log-serving.ts'

function open(causes: () => readonly string[]) {
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const log = createLogger({ level: 'info', name: 'test', destination })
  const clock = createManualClock()
  const stop = logServing({ log, clock, fields: { httpPort: 8000 }, causes })
  const messages = () => lines.map((line) => JSON.parse(line))
  return { clock, stop, messages }
}

await t.test('a server that nothing holds back is ready at once', async (t) => {
  const { clock, messages } = open(() => [])
  t.match(messages(), [{ level: 'info', message: 'server ready', httpPort: 8000 }])
  t.equal(clock.pending, 0)
})

await t.test('one that is held back says why, and when it is over', async (t) => {
  let causes = ['the broker is not connected']
  const { clock, messages } = open(() => causes)
  const first = {
    level: 'warn',
    message: 'listening, not ready yet',
    httpPort: 8000,
    causes: ['the broker is not connected'],
  }
  clock.advance(10_000)
  t.match(messages(), [first])
  t.equal(messages().length, 1)
  causes = []
  clock.advance(100)
  t.match(messages(), [first, { message: 'server ready', httpPort: 8000 }])
  t.equal(clock.pending, 0)
})

await t.test('it can end before', async (t) => {
  const { clock, stop, messages } = open(() => ['never'])
  stop()
  t.equal(clock.pending, 0)
  t.equal(messages().length, 1)
})

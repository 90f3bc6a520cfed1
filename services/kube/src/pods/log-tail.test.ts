import t from 'tap'
import { causeInLog } from './log-tail.ts'

const line = (level: string, message: string, more: object = {}) =>
  JSON.stringify({ level, time: '2026-11-22T18:06:55.382Z', service: 'fetch', ...more, message })
const RETRY = line('warn', 'fetch failed, trying again', { error: 'refused', delayMs: 197 })
const WORDS = "tutti-step fetch: 'http://h/x.tar' cannot be read: refused"

const CASES: readonly { name: string; text: string; wanted: string }[] = [
  { name: 'what it said at its end', text: WORDS, wanted: WORDS },
  {
    name: 'lines of the log before it are left out',
    text: `${RETRY}\n${RETRY}\n${WORDS}\n`,
    wanted: WORDS,
  },
  {
    name: 'the first of them may be cut',
    text: `${RETRY.slice(20)}\n${RETRY}\n${WORDS}`,
    wanted: WORDS,
  },
  {
    name: 'a traceback is all there',
    text: `${RETRY}\nTraceback:\n  File "x"\nValueError: y`,
    wanted: 'Traceback:\n  File "x"\nValueError: y',
  },
  {
    name: 'a log alone: its errors',
    text: `${RETRY}\n${line('error', 'model ended', { error: 'boom' })}\n${line('error', 'bye')}`,
    wanted: 'model ended: boom\nbye',
  },
  { name: 'a log without errors is all there is', text: RETRY, wanted: RETRY },
  { name: 'what only looks like a log stays', text: '{"a":1}\n{b', wanted: '{"a":1}\n{b' },
  { name: 'nothing', text: '', wanted: '' },
]

for (const { name, text, wanted } of CASES) {
  await t.test(name, async (t) => t.equal(causeInLog(text), wanted))
}

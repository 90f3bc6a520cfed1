import t from 'tap'
import { parseDuration } from './duration.ts'

await t.test('times are read as kubectl reads them', (t) => {
  for (const [text, ms] of [
    ['0', 0],
    ['0s', 0],
    ['30', 30_000],
    ['90s', 90_000],
    ['1h30m', 5_400_000],
    ['1.5m', 90_000],
    ['500ms', 500],
    ['0.4ms', 1],
    ['0.0001s', 1],
    ['24h', 86_400_000],
  ] as const) {
    t.equal(parseDuration('--timeout', text), ms, text)
  }
  for (const text of ['', 's', '-1s', '1d', '1 s', '5m x', '25h', '1e3', '9'.repeat(400)]) {
    const wanted = { reason: 'FLAG_INVALID', message: /--timeout: ".*", want a time such as 90s/ }
    t.throws(() => parseDuration('--timeout', text), wanted, text)
  }
  t.end()
})

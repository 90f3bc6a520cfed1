import t from 'tap'
import { startText } from './start-text.ts'

await t.test('it says what the start waits for, and how long', (t) => {
  const since = '2026-01-01T00:00:00Z'
  const start = {
    pod: 'p',
    waitsFor: 'Files',
    message: 'its files, 30 % of 4.3 GB',
    since,
  } as const
  const at = Date.parse(since)
  t.equal(startText(start, at + 12_400), 'waits for its files, 30 % of 4.3 GB (12 s)')
  t.equal(startText(start, at - 5000), 'waits for its files, 30 % of 4.3 GB (0 s)', 'clocks differ')
  t.end()
})

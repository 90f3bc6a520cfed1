import t from 'tap'
import { ListenedTime } from './listened-time.ts'

await t.test('time counts as it passes while the process runs', async (t) => {
  const time = new ListenedTime()
  t.same(
    [5000, 5100, 5250, 5450].map((now) => time.tick(now)),
    [0, 100, 250, 450],
  )
})

await t.test('where it stood still, two ticks count', async (t) => {
  const time = new ListenedTime()
  t.same(
    [0, 100, 60_000, 60_100].map((now) => [time.tick(now), time.missedMs]),
    [
      [0, 0],
      [100, 0],
      [300, 59_700],
      [400, 0],
    ],
  )
})

await t.test('where it hardly runs, as many as it came to', async (t) => {
  const time = new ListenedTime()
  const late = Array.from({ length: 11 }, (_, i) => time.tick(i * 500))
  t.equal(late.at(-1), 2000, 'of 5 s')
})

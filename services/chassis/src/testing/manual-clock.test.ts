import t from 'tap'
import { systemClock } from '../calls/call-scope.ts'
import { createManualClock } from './manual-clock.ts'

await t.test('timers fire in order of time, then of setting', async (t) => {
  const clock = createManualClock({ epochMs: 5000 })
  const fired: string[] = []
  const note = (name: string) => () => void fired.push(`${name}@${clock.now()}`)
  clock.setTimer(20, note('c'))
  clock.setTimer(10, note('a'))
  clock.setTimer(10, note('b'))
  clock.setTimer(5, () => {
    clock.setTimer(10, note('nested'))
  })
  const cancel = clock.setTimer(1, note('never'))
  cancel()
  clock.advance(20)
  t.same(fired, ['a@10', 'b@10', 'nested@15', 'c@20'])
  t.equal(clock.epochMs(), 5020)
  t.equal(clock.pending, 0)
})

await t.test('the system clock counts on, fires and takes timers back', async (t) => {
  const before = systemClock.now()
  const late = systemClock.setTimer(2 ** 40, () => t.fail('fired'))
  await new Promise<void>((resolve) => {
    systemClock.setTimer(-5, resolve)
  })
  late()
  t.ok(systemClock.now() >= before)
  t.ok(systemClock.epochMs() > 1_700_000_000_000)
})

import t from 'tap'
import { createHealth, STARTING, withCauses } from './health.ts'

await t.test('a process is ready once nothing holds it back', async (t) => {
  const health = createHealth()
  t.match(health, { isLive: true, isReady: false, reasons: ['the server is starting'] })
  health.hold('nats', 'no broker')
  health.release(STARTING)
  t.match(health, { isReady: false, reasons: ['no broker'] })
  health.hold('nats', 'no broker since 3 s')
  t.same(health.reasons, ['no broker since 3 s'])
  health.release('nats')
  health.release('nats')
  t.match(health, { isLive: true, isReady: true, reasons: [] })
})

await t.test('a dead process is neither live nor ready', async (t) => {
  const health = createHealth()
  health.release(STARTING)
  health.die('the server is closing')
  t.match(health, { isLive: false, isReady: false, reasons: ['the server is closing'] })
})

await t.test('causes of others are looked up at each reading', async (t) => {
  const health = createHealth()
  const causes: string[] = ['the broker is not connected']
  const all = withCauses(health, () => causes)
  t.same([all.isLive, all.isReady], [true, false])
  t.same(all.reasons, ['the server is starting', 'the broker is not connected'])
  health.release('starting')
  t.equal(all.isReady, false)
  causes.pop()
  t.equal(all.isReady, true)
  health.die('closing')
  t.same([all.isLive, all.isReady, all.reasons], [false, false, ['closing']])
})

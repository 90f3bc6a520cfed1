import t from 'tap'
import { createHealth, STARTING } from './health.ts'

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

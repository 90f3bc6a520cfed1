import { startNatsServer } from '@tutti/chassis/testing'
import t from 'tap'
import {
  brokerAt,
  echo,
  openTestRouter,
  openTestStep,
  REVISION,
  SERVED,
  until,
  WITH_NATS,
} from '../testing/peers.ts'

await t.test('a step that serves something else says so at once', WITH_NATS, async (t) => {
  const server = await startNatsServer()
  t.teardown(() => server.stop())
  const broker = brokerAt(server.url)
  const router = await openTestRouter(t, broker, 'router')
  let revisions: (readonly [string, number, string])[] = [REVISION]
  const listeners: (() => void)[] = []
  await openTestStep(t, broker, 'step', echo, {
    revisions: () => revisions,
    onChange: (listener) => {
      listeners.push(listener)
      return () => {}
    },
    settings: { heartbeatMs: 60_000, deadAfterMs: 600_000 },
  })
  await until(() => router.directory.isServed(SERVED))
  revisions = [['m', 2, 'bbb']]
  for (const changed of listeners) changed()
  await until(() => router.directory.isServed({ model: 'm', version: 2, revision: 'bbb' }))
  t.notOk(router.directory.isServed(SERVED))
  t.same(router.changed, ['step', 'step'])
})

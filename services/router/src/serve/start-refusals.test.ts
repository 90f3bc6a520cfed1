import { createHealth, loadTracingSettings, parseFlags, silentLogger } from '@tutti/chassis'
import t from 'tap'
import { ScriptedRouterEndpoint } from '../testing/index.ts'
import { ROUTER_FLAGS } from './router-flags.ts'
import { startRouter } from './start-router.ts'

await t.test('what clients may do is read before the broker is joined', async (t) => {
  const endpoint = new ScriptedRouterEndpoint()
  const argv = ['--nats=nats://nowhere.invalid:4222', `--access-file=${t.testdir()}/none.yaml`]
  const starting = startRouter({
    flags: parseFlags(ROUTER_FLAGS, argv).values,
    settings: loadTracingSettings({}),
    log: silentLogger,
    health: createHealth(),
    signal: new AbortController().signal,
    openEndpoint: endpoint.open,
  })
  await t.rejects(starting, { message: /none\.yaml/ })
  t.notOk(endpoint.events.includes('joined'))
})

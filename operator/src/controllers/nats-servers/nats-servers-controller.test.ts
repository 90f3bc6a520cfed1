// needs: apiserver
import { createMetrics, silentLogger, systemClock } from '@tutti/chassis'
import { createClient, createReflector, createTransport } from '@tutti/kube'
import { type PlainObject, startApiServer, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { AccountTenancy } from '../../nats/account-tenancy.ts'
import { ROTATION_ANNOTATION } from '../../nats/own-keys.ts'
import { openFakeLink } from '../../nats/testing/fake-link.ts'
import { createRuntimeMetrics } from '../../runtime/metrics.ts'
import { createNatsServersController } from './nats-servers-controller.ts'

const NAMESPACE = 'tutti-system'
const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`
const KEYS = `${SECRETS}/tutti-nats-keys`
const SERVER = `${SECRETS}/tutti-nats-server`

function text(object: PlainObject | undefined): string {
  return object?.['data']?.['tenancy.conf'] ?? ''
}

await t.test('Secrets of the servers', { skip: withoutKube() }, async (t) => {
  const server = await startApiServer()
  t.teardown(() => server.stop())
  const { plain } = server
  await plain.create('/api/v1/namespaces', { metadata: { name: NAMESPACE } })
  const around = { clock: systemClock, log: silentLogger }
  const transport = createTransport(server.access(), { ...around, userAgent: 'test' })
  t.teardown(() => transport.close())
  const client = createClient(transport)
  const tenancy = new AccountTenancy({
    ...around,
    client,
    namespace: NAMESPACE,
    urls: ['tls://nats.example:4222'],
    clusterHosts: [],
    limits: { connections: 96, subscriptions: 1024 },
    secrets: () => [],
    onLost: () => {},
    openLink: openFakeLink,
    prefix: 'tutti',
    lifetimeMs: 86_400_000,
  })
  const changes: string[] = []
  const { caches, controllers } = createNatsServersController({
    ...around,
    metrics: createRuntimeMetrics(createMetrics()),
    tenancy,
    namespace: NAMESPACE,
    openReflector: (o) => createReflector({ ...o, client }),
    onIssuerChanged: () => changes.push('changed'),
  })
  for (const cache of caches) cache.start()
  await Promise.all(caches.map(({ synced }) => synced))
  for (const controller of controllers) controller.start()
  t.teardown(async () => {
    for (const controller of controllers) controller.stop()
    await Promise.all(controllers.map((controller) => controller.drained()))
    await Promise.all(caches.map((cache) => cache.close()))
  })

  const made = await plain.until(SERVER, (object) => text(object) !== '')
  t.ok(await plain.get(KEYS), 'both are made where there was nothing')

  await plain.delete(SERVER)
  const again = await plain.until(SERVER, (object) => text(object) !== '')
  t.equal(text(again), text(made), 'what was deleted comes back as it was')

  const rotate = async (step: string): Promise<void> => {
    const data = JSON.stringify((await plain.get(KEYS))['data'])
    await plain.patch(KEYS, { metadata: { annotations: { [ROTATION_ANNOTATION]: step } } })
    await plain.until(KEYS, (object) => JSON.stringify(object?.['data']) !== data)
  }
  await rotate('add')
  t.same(changes, ['changed'], 'once for the first key')
  await rotate('use')
  while (changes.length === 1) await new Promise((resolve) => setImmediate(resolve))
  t.same(changes, ['changed', 'changed'], 'the keeper of credentials is told')
})

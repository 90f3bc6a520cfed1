import type { RequestListener } from 'node:http'
import { silentLogger, systemClock } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import type { Pod, Stored } from '@tutti/kube'
import { type Test, test } from 'tap'
import { type PodServer, startPodServer } from '../testing/pod-server.ts'
import { createPodClient } from './pod-client.ts'
import { RouterViews } from './router-views.ts'

const signal = new AbortController().signal

function routerPod(
  server: Pick<PodServer, 'ip'>,
  name: string,
  isReady = true,
  namespace = 'a',
): Stored<Pod> {
  const status = isReady ? 'True' : 'False'
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name, uid: name, resourceVersion: '1', creationTimestamp: '' },
    spec: { containers: [] },
    status: { podIP: server.ip, conditions: [{ type: 'Ready', status }] },
  }
}

async function open(
  t: Test,
  o: { readonly listener?: RequestListener; readonly timeoutMs?: number } = {},
) {
  const clock = createManualClock()
  const server = await startPodServer(o)
  t.teardown(() => server.close())
  const client = createPodClient({
    clock: systemClock,
    port: server.port,
    ...(o.timeoutMs !== undefined && { timeoutMs: o.timeoutMs }),
  })
  const pods: Stored<Pod>[] = []
  const changes: string[] = []
  const waiting: (() => void)[] = []
  const views = new RouterViews({
    client,
    clock,
    log: silentLogger,
    routersOf: (name) => pods.filter(({ metadata }) => metadata.namespace === name),
    namespaces: () => new Set(pods.flatMap(({ metadata }) => metadata.namespace ?? [])),
    onChange: (namespace) => {
      changes.push(namespace)
      for (const wake of waiting.splice(0)) wake()
    },
  })
  t.teardown(() => {
    views.abort()
    return views.drained()
  })
  const changed = (): Promise<void> => new Promise((resolve) => waiting.push(resolve))
  return { clock, server, pods, views, changes, changed }
}

const served = (accepted: readonly string[]) => ({ models: [], accepted })

await test('ready routers are asked, and answers shared for a while', async (t) => {
  const { server, pods, views } = await open(t)
  server.answer('/tutti/v1/served', served(['m-1']))
  pods.push(routerPod(server, 'r2'), routerPod(server, 'r1'), routerPod(server, 'r0', false))
  const look = () => views.look('a', { maxAgeMs: 100, signal })
  const [one, other] = await Promise.all([look(), look()])
  t.same(one, [
    { pod: 'r1', served: served(['m-1']) },
    { pod: 'r2', served: served(['m-1']) },
  ])
  t.same(other, one)
  t.equal(server.asked.get('/tutti/v1/served'), 2)
  await look()
  t.equal(server.asked.get('/tutti/v1/served'), 2)
  await views.look('a', { maxAgeMs: -1, signal })
  t.equal(server.asked.get('/tutti/v1/served'), 4)
})

await test('a router that cannot be asked is told apart', async (t) => {
  const { server, pods, views } = await open(t)
  pods.push(routerPod(server, 'r1'))
  const [view] = await views.look('a', { maxAgeMs: 0, signal })
  t.match(view, { pod: 'r1', error: { reason: 'POD_UNREACHABLE' } })
})

await test('one answer that is lost says nothing of a router, silence for long does', async (t) => {
  let isSilent = false
  const { clock, pods, server, views } = await open(t, {
    listener: (_request, response) => {
      if (isSilent) response.destroy()
      else response.end(JSON.stringify(served(['m-1'])))
    },
  })
  pods.push(routerPod(server, 'r1'))
  const look = () => views.look('a', { maxAgeMs: -1, signal })
  const good = [{ pod: 'r1', served: served(['m-1']) }]
  t.same(await look(), good)
  isSilent = true
  for (const ms of [1, 15_000, 14_998]) {
    clock.advance(ms)
    t.same(await look(), good, `after another ${ms} ms`)
  }
  clock.advance(1)
  t.match(await look(), [{ pod: 'r1', error: { reason: 'POD_UNREACHABLE' } }])
  isSilent = false
  t.same(await look(), good)
})

await test('listeners hear that a router serves other things, and only then', async (t) => {
  const { clock, server, pods, views, changes, changed } = await open(t)
  server.answer('/tutti/v1/served', served(['m-1']))
  pods.push(routerPod(server, 'r1'))
  await views.look('a', { maxAgeMs: 0, signal })
  views.start()
  server.answer('/tutti/v1/served', served([]))
  const first = changed()
  clock.advance(10_000)
  await first
  t.same(changes, ['a'])
  const second = changed()
  await server.close()
  // The timer of the next poll is set once the one before has ended.
  const again = setInterval(() => clock.advance(10_000), 20)
  t.teardown(() => clearInterval(again))
  await second
  t.same(changes, ['a', 'a'])
})

await test('what one who waits has seen change, all others hear of', async (t) => {
  const { clock, server, pods, views, changes, changed } = await open(t)
  server.answer('/tutti/v1/served', served(['m-1']))
  pods.push(routerPod(server, 'r1'))
  await views.look('a', { maxAgeMs: 0, signal })
  views.start()
  server.answer('/tutti/v1/served', served(['m-2']))
  await views.look('a', { maxAgeMs: -1, signal })
  const told = changed()
  clock.advance(10_000)
  await told
  t.same(changes, ['a'])
})

await test('what routers say is kept once, and not without bounds', async (t) => {
  const long = 'x'.repeat(3.5 * 2 ** 20)
  let asked = 0
  let isSame = true
  const { server, pods, views } = await open(t, {
    timeoutMs: 60_000,
    listener: (_request, response) => {
      asked += 1
      response.end(JSON.stringify(served([isSame ? long : `${asked}${long}`])))
    },
  })
  pods.push(...['r1', 'r2', 'r3', 'r4'].map((name) => routerPod(server, name)))
  const look = () => views.look('a', { maxAgeMs: -1, signal })
  const said = (await look()).map((view) => ('served' in view ? view.served : view.error))
  t.equal(new Set(said).size, 1)
  isSame = false
  const refused = (await look()).filter((view) => 'error' in view)
  t.equal(refused.length, 2)
  t.match(refused[0], { error: { reason: 'MESSAGE_TOO_LARGE', message: /give different answers/ } })
})

await test('silent routers of other namespaces do not hold up the others', async (t) => {
  const { clock, server, pods, views, changed } = await open(t)
  const mute = await startPodServer({ ip: '127.0.0.2', port: server.port, listener: () => {} })
  t.teardown(() => mute.close())
  for (let i = 0; i < 20; i++) pods.push(routerPod(mute, `mute-${i}`, true, `silent-${i}`))
  pods.push(routerPod(server, 'r1'))
  server.answer('/tutti/v1/served', served(['m-1']))
  await views.look('a', { maxAgeMs: 0, signal })
  views.start()
  server.answer('/tutti/v1/served', served([]))
  const told = changed()
  const at = performance.now()
  clock.advance(10_000)
  await told
  // One after the other, each of them would have taken its 5 s first.
  t.ok(performance.now() - at < 50_000)
})

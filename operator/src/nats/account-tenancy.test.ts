// needs: nats
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect as connectPlain } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { createMetrics } from '@tutti/chassis'
import { until, withoutNatsServer } from '@tutti/chassis/testing'
import { SECRET } from '@tutti/kube'
import { Empty, type Msg } from 'nats'
import t from 'tap'
import { parseAccountKeys, toAccountIssuer } from './account-keys.ts'
import { ACCOUNT_LABEL } from './account-owners.ts'
import { ROTATION_ANNOTATION } from './own-keys.ts'
import { createServerMetrics } from './server-metrics.ts'
import { NATS_SECRETS } from './tenancy-secrets.ts'
import { type AccountWorld, openAccountWorld } from './testing/account-world.ts'
import { connectTenant, type Teardown } from './testing/tenant-server.ts'
import { issueCredentials } from './user-credentials.ts'

const WITH_NATS = { skip: withoutNatsServer() }

/** A client with the credential that the Secret of the namespace has now, or with an earlier one. */
function enter(
  t: Teardown,
  world: AccountWorld,
  namespace: string,
  o: { readonly credentials?: string; readonly server?: number } = {},
) {
  const { credentials, authorities } = world.credential(namespace)
  const url = world.urls[o.server ?? 0] ?? ''
  return connectTenant(
    t,
    url,
    o.credentials ?? credentials,
    `tutti.${namespace}.inbox`,
    authorities,
  )
}

function isLetIn(
  t: Teardown,
  world: AccountWorld,
  namespace: string,
  o: Parameters<typeof enter>[3] = {},
): Promise<boolean> {
  return enter(t, world, namespace, o).then(
    ({ connection }) => connection.close().then(() => true),
    (error: unknown) => {
      if (error instanceof Error && /authorization violation/i.test(error.message)) return false
      throw error
    },
  )
}

/** Each namespace has its credential, and the servers know all accounts. */
async function serve(world: AccountWorld, ...namespaces: readonly string[]): Promise<void> {
  for (const namespace of namespaces) await world.tenancy.ensureTenant(namespace)
  await world.tenancy.ensureServers()
}

await t.test('namespaces come and go while a server runs', WITH_NATS, async (t) => {
  const world = await openAccountWorld(t)
  const { tenancy } = world
  await tenancy.ensureTenant('a')
  t.match(await tenancy.ensureServers(), { requeueAfterMs: 500 }, 'no server is there yet')
  t.match(world.lines.join(''), 'nats servers not reached')
  const server = await world.start(0)
  t.equal(await isLetIn(t, world, 'a'), false, 'a server knows what it was told')
  t.match(await tenancy.ensureServers(), { issuer: /^A/, requeueAfterMs: 600_000 })
  t.equal(await isLetIn(t, world, 'a'), true)

  await tenancy.ensureTenant('b')
  await tenancy.ensureServers()
  const [a, b] = [await enter(t, world, 'a'), await enter(t, world, 'b')]
  t.equal(await b.maySubscribe('tutti.b.x'), true)
  t.equal(await b.maySubscribe('tutti.a.x'), false)

  const { credentials } = world.credential('b')
  world.remove('b')
  await tenancy.ensureServers()
  t.match(await b.connection.closed(), { message: /account authentication expired/i })
  t.equal(a.connection.isClosed(), false)
  world.pass(60_000)
  await tenancy.ensureTenant('b')
  await tenancy.ensureServers()
  t.equal(await isLetIn(t, world, 'b'), true)
  t.equal(await isLetIn(t, world, 'b', { credentials }), false, 'nothing of the former one is good')

  await tenancy.close()
  await server.restart()
  t.equal(await isLetIn(t, world, 'a'), true, 'a server that restarts in its pod knows all of them')
  await world.replace(0)
  t.equal(await isLetIn(t, world, 'a'), false, 'one in another pod is told')
  await tenancy.ensureServers()
  t.equal(await isLetIn(t, world, 'a'), true)
  t.equal(await isLetIn(t, world, 'b'), true)
})

await t.test('servers say how they are, to who is connected', WITH_NATS, async (t) => {
  const world = await openAccountWorld(t, { environment: { GOMEMLIMIT: '64MiB' } })
  const metrics = createMetrics()
  createServerMetrics(metrics, () => world.tenancy.readServers())
  const read = async () => {
    const text = await metrics.render()
    const found = text.matchAll(/^tutti_nats_server_(\w+)\{server="s0"\} (\d+)$/gm)
    return Object.fromEntries([...found].map(([, name, value]) => [name, Number(value)]))
  }
  t.same(await read(), {}, 'no server is there yet')
  await serve(world, 'a')
  const server = await world.start(0)
  await world.tenancy.ensureServers()
  const { connections: before = 0, received_bytes_total: bytes = 0 } = await read()
  const { connection } = await enter(t, world, 'a')
  connection.publish('tutti.a.x', 'x'.repeat(1000))
  await connection.flush()
  const now = await read()
  t.match(now, { connections: before + 1, memory_limit_bytes: 2 ** 26, slow_consumers_total: 0 })
  t.ok((now['received_bytes_total'] ?? 0) >= bytes + 1000)
  t.ok((now['memory_bytes'] ?? 0) > 2 ** 20)
  await server.stop()
  t.same(await read(), {}, 'and no figure is old')
})

await t.test('a reload does not bring back what was removed', WITH_NATS, async (t) => {
  const world = await openAccountWorld(t)
  await serve(world, 'a', 'b')
  await world.start(0)
  await world.tenancy.ensureServers()
  const { credentials, authorities } = world.credential('b')
  const mayEnter = () =>
    connectTenant(t, world.urls[0] ?? '', credentials, 'tutti.b.inbox', authorities).then(
      () => true,
      () => false,
    )
  t.equal(await mayEnter(), true)
  world.remove('b')
  await world.tenancy.ensureServers()
  t.equal(await mayEnter(), false)
  await world.tenancy.close()
  // The first connection of a process has servers read their files, which the kubelet has not brought up to date.
  const next = world.restarted()
  t.teardown(() => next.close())
  await next.ensureServers()
  t.match(world.lines.at(-1), 'nats servers reloaded')
  t.equal(await mayEnter(), false)
})

await t.test('a namespace has one new account in a minute', WITH_NATS, async (t) => {
  const world = await openAccountWorld(t)
  const { tenancy } = world
  await serve(world, 'a', 'b')
  await world.start(0)
  await tenancy.ensureServers()
  const changes = () => world.lines.splice(0).filter((line) => line.includes('accounts told'))
  changes()
  const flip = async (id: string) => {
    const key = { namespace: 'a', name: NATS_SECRETS.credentials }
    const patch = { metadata: { labels: { [ACCOUNT_LABEL]: id.repeat(32) } } }
    await world.client.mergePatch(SECRET, key, { fieldManager: 'test', patch })
    await tenancy.ensureTenant('a')
    return await tenancy.ensureServers()
  }
  world.pass(59_000)
  const { requeueAfterMs } = await flip('0')
  t.equal(requeueAfterMs, 1000)
  for (const id of ['1', '0', '1', '0']) await flip(id)
  t.match(changes(), [/"updated":0,"removed":1/], 'the former one goes, at once and once')
  world.pass(1000)
  await tenancy.ensureServers()
  t.match(changes(), [/"updated":1,"removed":0/])
  t.equal(await isLetIn(t, world, 'a'), true)
  for (const id of ['1', '0', '1', '0']) await flip(id)
  t.match(changes(), [/"updated":0,"removed":1/], 'the one that it had is no exception')
  t.equal(await isLetIn(t, world, 'b'), true)
})

await t.test('accounts are apart also where subjects are the same', WITH_NATS, async (t) => {
  const world = await openAccountWorld(t)
  await serve(world, 'a', 'b')
  await world.start(0)
  await world.tenancy.ensureServers()
  const keys = parseAccountKeys(textsOf(world, NATS_SECRETS.keys))
  const labels = world.client.objects.get(`Secret a/${NATS_SECRETS.credentials}`)?.metadata.labels
  // A credential that no tenant gets: the account of one, and the subjects of the other.
  const mixed = issueCredentials({
    issuer: toAccountIssuer(keys, { namespace: 'a', id: labels?.[ACCOUNT_LABEL] ?? '' }),
    prefix: 'tutti',
    namespace: 'b',
    lifetimeMs: 60_000,
    nowMs: Date.now(),
  })
  const stranger = await enter(t, world, 'b', { credentials: mixed })
  const own = await enter(t, world, 'b')
  const heard: string[] = []
  own.connection.subscribe('tutti.b.>', { callback: (_error, one) => heard.push(one.subject) })
  await own.connection.flush()
  t.equal(await stranger.mayPublish('tutti.b.x'), true)
  t.equal(await own.mayPublish('tutti.b.y'), true)
  await own.connection.flush()
  t.same(heard, ['tutti.b.y'])
})

function textsOf(world: AccountWorld, name: string): Readonly<Record<string, string>> {
  const { data = {} } = world.client.objects.get(`Secret tutti-system/${name}`) as {
    data?: Record<string, string>
  }
  return Object.fromEntries(
    Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]),
  )
}

await t.test('what a namespace has too much of is refused to it alone', WITH_NATS, async (t) => {
  const world = await openAccountWorld(t, { limits: { connections: 4, subscriptions: 12 } })
  await serve(world, 'a', 'b')
  await world.start(0)
  await world.tenancy.ensureServers()
  const four = await Promise.all([1, 2, 3, 4].map(() => enter(t, world, 'a')))
  await t.rejects(enter(t, world, 'a'), { message: /maximum account active connections/i })
  const other = await enter(t, world, 'b')
  const one = four[0]?.connection
  const heard: string[] = []
  const callback = (_error: unknown, { subject }: Msg): void => void heard.push(subject)
  for (let count = 0; count < 20; count += 1) one?.subscribe(`tutti.a.${count}`, { callback })
  await one?.flush()
  for (let count = 0; count < 20; count += 1) one?.publish(`tutti.a.${count}`)
  await one?.flush()
  t.equal(heard.length, 12)
  t.equal(await other.maySubscribe('tutti.b.x'), true)
})

await t.test('a rotation needs no reload, and ends what it removes', WITH_NATS, async (t) => {
  const world = await openAccountWorld(t)
  await serve(world, 'a')
  const before = world.credential('a').credentials
  const step = async (name: string) => {
    const key = { namespace: 'tutti-system', name: NATS_SECRETS.keys }
    const annotations = { [ROTATION_ANNOTATION]: name }
    await world.client.mergePatch(SECRET, key, {
      fieldManager: 'test',
      patch: { metadata: { annotations } },
    })
    const next = await world.tenancy.ensureServers()
    await world.tenancy.ensureTenant('a')
    return next
  }
  const refused = () => world.lines.splice(0).filter((line) => line.includes('rotation refused'))
  t.match(await step('add'), { requeueAfterMs: 500 })
  t.match(await step('use'), { requeueAfterMs: 500 }, 'it is tried again')
  t.match(refused(), [/annotation .*no server has learned the next key/])
  t.equal(world.credential('a').credentials, before)
  const server = await world.start(0)
  await step('use')
  t.not(world.credential('a').credentials, before)
  t.equal(await isLetIn(t, world, 'a'), true)
  const old = await enter(t, world, 'a', { credentials: before })
  t.ok(old, 'the last key is good still')
  t.match(await step('remove'), { requeueAfterMs: 600_000 }, 'what else there is goes on')
  await step('remove')
  t.match(refused(), [/good until/], 'once is enough')
  t.equal(old.connection.isClosed(), false)
  await step('remove-now')
  await old.connection.closed()
  t.equal(await isLetIn(t, world, 'a', { credentials: before }), false)
  t.equal(await isLetIn(t, world, 'a'), true)
  await server.restart()
  await until('the connection is lost', () => world.lost > 0)
  t.equal(await isLetIn(t, world, 'a', { credentials: before }), false, 'nor after a restart')
  await world.tenancy.ensureServers()
  t.equal(await isLetIn(t, world, 'a'), true)
})

await t.test('servers speak TLS alone, and take a renewed certificate', WITH_NATS, async (t) => {
  const world = await openAccountWorld(t)
  await serve(world, 'a')
  const server = await world.start(0)
  const { credentials, authorities } = world.credential('a')
  await t.rejects(connectTenant(t, `nats://127.0.0.1:${server.port}`, credentials))
  const other = await openAccountWorld(t)
  await serve(other, 'a')
  const { authorities: foreign } = other.credential('a')
  const url = world.urls[0] ?? ''
  await t.rejects(connectTenant(t, url, credentials, 'tutti.a.inbox', foreign), {
    message: /self.signed|unable to/i,
  })
  const fingerprint = (): Promise<string> => fingerprintOf(server.port, authorities)
  const first = await fingerprint()
  const renewed = textsOf(world, NATS_SECRETS.server)
  const key = { namespace: 'tutti-system', name: NATS_SECRETS.server }
  const { 'tls.crt': _, ...data } = renewed
  await world.client.mergePatch(SECRET, key, {
    fieldManager: 'test',
    patch: { data: toData({ ...data, 'tls.crt': 'x' }) },
  })
  // The reload is due with the first connection of a process.
  await world.tenancy.close()
  await world.restarted().ensureServers()
  for (const name of ['tls.crt', 'tls.key']) {
    const place = join(world.folder, `server-0-${name}`)
    await writeFile(place, textsOf(world, NATS_SECRETS.server)[name] ?? '')
  }
  t.equal(await fingerprint(), first)
  const successor = world.restarted()
  t.teardown(() => successor.close())
  await successor.ensureServers()
  t.not(await fingerprint(), first)
})

function toData(texts: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
  )
}

/** Reads the fingerprint of the certificate that the server shows, which must be of the authority. */
async function fingerprintOf(port: number, ca: string): Promise<string> {
  const plain = connectPlain(port, '127.0.0.1')
  // NATS begins in the clear, and tells so before TLS.
  await once(plain, 'data')
  const socket = connectTls({ socket: plain, ca, servername: 'localhost' })
  await once(socket, 'secureConnect')
  const { fingerprint256 } = socket.getPeerCertificate()
  socket.destroy()
  return fingerprint256
}

await t.test('three servers know the same accounts', WITH_NATS, async (t) => {
  const world = await openAccountWorld(t, { servers: 3 })
  await serve(world, 'a')
  const servers = await Promise.all([0, 1, 2].map((index) => world.start(index)))
  await until('routes', () => servers.every(({ lines }) => routesOf(lines) >= 2))
  await serve(world, 'b')
  for (const server of [0, 1, 2]) {
    await untilTrue(() => isLetIn(t, world, 'b', { server }))
    t.equal(await isLetIn(t, world, 'a', { server }), true)
  }
  const [asked, asker] = [
    await enter(t, world, 'b', { server: 0 }),
    await enter(t, world, 'b', { server: 2 }),
  ]
  asked.connection.subscribe('tutti.b.ask', { callback: (_error, one) => one.respond('here') })
  await asked.connection.flush()
  const ask = () => asker.connection.request('tutti.b.ask', Empty, { timeout: 1000 })
  await untilTrue(() =>
    ask().then(
      () => true,
      () => false,
    ),
  )
  await world.replace(1)
  await untilTrue(() => isLetIn(t, world, 'a', { server: 1 }))
  t.equal(
    await isLetIn(t, world, 'b', { server: 1 }),
    true,
    'from the others, without the operator',
  )
  world.remove('b')
  await world.tenancy.ensureServers()
  await Promise.all([asked.connection.closed(), asker.connection.closed()])
})

async function untilTrue(check: () => Promise<boolean>): Promise<void> {
  while (!(await check())) await new Promise((resolve) => setImmediate(resolve))
}

function routesOf(lines: readonly string[]): number {
  return lines.filter((line) => line.includes('Route connection created')).length
}

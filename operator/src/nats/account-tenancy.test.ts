// needs: nats
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect as connectPlain } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { until, withoutNatsServer } from '@tutti/chassis/testing'
import { SECRET } from '@tutti/kube'
import { Empty, type Msg } from 'nats'
import t from 'tap'
import { parseAccountKeys, toAccountIssuer } from './account-keys.ts'
import { ACCOUNT_LABEL, ACCOUNT_SECRETS } from './account-tenancy.ts'
import { ROTATION_ANNOTATION } from './own-keys.ts'
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
  t.match(await tenancy.ensureServers(), { requeueAfterMs: 2000 }, 'no server is there yet')
  t.match(world.lines.join(''), 'nats servers not reached')
  await world.start(0)
  t.equal(await isLetIn(t, world, 'a'), true, 'a server knows what was there before it started')
  t.match(await tenancy.ensureServers(), { issuer: /^A/, requeueAfterMs: 600_000 })

  await tenancy.ensureTenant('b')
  t.equal(await isLetIn(t, world, 'b'), false)
  await tenancy.ensureServers()
  const [a, b] = [await enter(t, world, 'a'), await enter(t, world, 'b')]
  t.equal(await b.maySubscribe('tutti.b.x'), true)
  t.equal(await b.maySubscribe('tutti.a.x'), false)

  const { credentials } = world.credential('b')
  world.remove('b')
  await tenancy.ensureServers()
  t.match(await b.connection.closed(), { message: /account authentication expired/i })
  t.equal(a.connection.isClosed(), false)
  await tenancy.ensureTenant('b')
  await tenancy.ensureServers()
  t.equal(await isLetIn(t, world, 'b'), true)
  t.equal(await isLetIn(t, world, 'b', { credentials }), false, 'nothing of the former one is good')

  await tenancy.close()
  await world.replace(0)
  t.equal(await isLetIn(t, world, 'a'), true, 'a server that is replaced knows all of them')
  t.equal(await isLetIn(t, world, 'b'), true, 'also those that came while the former one ran')
  t.equal(await isLetIn(t, world, 'b', { credentials }), false)
})

await t.test('accounts are apart also where subjects are the same', WITH_NATS, async (t) => {
  const world = await openAccountWorld(t)
  await serve(world, 'a', 'b')
  await world.start(0)
  await world.tenancy.ensureServers()
  const keys = parseAccountKeys(textsOf(world, ACCOUNT_SECRETS.keys))
  const labels = world.client.objects.get(`Secret a/${ACCOUNT_SECRETS.credentials}`)?.metadata
    .labels
  // What no tenant gets: the account of one, and the subjects of the other.
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
  const server = await world.start(0)
  await world.tenancy.ensureServers()
  const before = world.credential('a').credentials
  const old = await enter(t, world, 'a')
  const step = async (name: string): Promise<void> => {
    const key = { namespace: 'tutti-system', name: ACCOUNT_SECRETS.keys }
    const annotations = { [ROTATION_ANNOTATION]: name }
    await world.client.mergePatch(SECRET, key, {
      fieldManager: 'test',
      patch: { metadata: { annotations } },
    })
    await world.tenancy.ensureServers()
    await world.tenancy.ensureTenant('a')
  }
  await step('add')
  await step('use')
  t.not(world.credential('a').credentials, before)
  t.equal(await isLetIn(t, world, 'a'), true)
  t.equal(await isLetIn(t, world, 'a', { credentials: before }), true, 'the last key is good still')
  await t.rejects(step('remove'), { name: 'TerminalError', message: /good until/ })
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
  const renewed = textsOf(world, ACCOUNT_SECRETS.server)
  const key = { namespace: 'tutti-system', name: ACCOUNT_SECRETS.server }
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
    await writeFile(place, textsOf(world, ACCOUNT_SECRETS.server)[name] ?? '')
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

/** Of the certificate that the server shows, which must be of the authority. */
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

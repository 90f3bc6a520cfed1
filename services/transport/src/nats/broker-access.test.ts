import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogger } from '@tutti/chassis'
import {
  createNatsKey,
  createNatsOperator,
  createTestCertificates,
  type NatsServerOptions,
  startNatsServer,
} from '@tutti/chassis/testing'
import t from 'tap'
import type { BrokerOptions } from '../peers.ts'
import {
  brokerAt,
  collect,
  echo,
  envelope,
  failureOf,
  openTestRouter,
  openTestStep,
  ref,
  SERVED,
  type Teardown,
  tensorBytes,
  until,
  WITH_NATS,
} from '../testing/peers.ts'

const quiet = { signal: new AbortController().signal }

async function openFolder(t: Teardown): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-access-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

async function openServer(t: Teardown, o: NatsServerOptions): Promise<string> {
  const server = await startNatsServer(o)
  t.teardown(() => server.stop())
  return server.url
}

/** Both roles connect with these options, and a tensor passes between them. */
async function passes(t: Teardown, broker: BrokerOptions): Promise<boolean> {
  const router = await openTestRouter(t, broker, 'router')
  await openTestStep(t, broker, 'step', echo)
  await until(() => router.directory.isServed(SERVED))
  const bytes = tensorBytes(100_000)
  const call = router.peer.bearer.call({ replica: 'step' }, envelope(100_000), [ref(bytes)], quiet)
  const [response] = await collect(call)
  await router.peer.ask('step', 'describe', {}, quiet)
  return Buffer.from(bytes).equals(response?.outputs[0]?.data ?? new Uint8Array())
}

/** A peer with these options stays outside; what its log says. */
async function staysOutside(t: Teardown, broker: BrokerOptions): Promise<string> {
  const lines: string[] = []
  const log = createLogger({
    level: 'warn',
    name: 'test',
    destination: { write: (line) => lines.push(line) },
  })
  const step = await openTestStep(t, broker, 'stranger', echo, {
    settings: { firstConnectMs: 300 },
    log,
  })
  if (step.isConnected) throw new Error('it was let in')
  return lines.join('')
}

/** What each tenant's user is permitted, and nothing else. */
const OWN = ['tutti.default.>']

await t.test('user and password, with no more than its own subjects', WITH_NATS, async (t) => {
  const users = [{ user: 'u', password: 'right', allow: OWN }]
  const url = await openServer(t, { access: { kind: 'users', users } })
  t.ok(await passes(t, brokerAt(url, { user: 'u', password: () => 'right' })))
  const log = await staysOutside(t, brokerAt(url, { user: 'u', password: () => 'wrong' }))
  t.match(log, /broker refused the connection/)
  t.notMatch(log, /wrong/, 'secrets stay out of the log')
})

await t.test('a token, asked for at every connect', WITH_NATS, async (t) => {
  const url = await openServer(t, { access: { kind: 'token', token: 'right' } })
  const tokens = ['wrong', 'wrong', 'right']
  t.ok(await passes(t, brokerAt(url, { token: () => tokens.shift() ?? 'right' })))
})

await t.test('an nkey', WITH_NATS, async (t) => {
  const folder = await openFolder(t)
  const [known, stranger] = [createNatsKey(), createNatsKey()]
  const nkeys = [{ publicKey: known.publicKey, allow: OWN }]
  const url = await openServer(t, { access: { kind: 'nkeys', nkeys } })
  const nkeyFile = join(folder, 'seed')
  await writeFile(nkeyFile, `${known.seed}\n`)
  t.ok(await passes(t, brokerAt(url, { nkeyFile })))
  await writeFile(nkeyFile, stranger.seed)
  t.match(await staysOutside(t, brokerAt(url, { nkeyFile })), /refused/)
})

await t.test('a credentials file, read again at every connect', WITH_NATS, async (t) => {
  const folder = await openFolder(t)
  const operator = createNatsOperator()
  const url = await openServer(t, { access: { kind: 'operator', operator } })
  const credentialsFile = join(folder, 'user.creds')
  const expired = { allow: OWN, expiresAtS: 1 }
  await writeFile(credentialsFile, operator.credentials(expired))
  const broker = brokerAt(url, { credentialsFile })
  t.match(await staysOutside(t, broker), /refused/)
  const late = openTestStep(t, broker, 'late', echo)
  await writeFile(credentialsFile, operator.credentials({ allow: OWN }))
  t.ok((await late).isConnected, 'the renewed file lets it in')
  t.ok(await passes(t, broker))
})

await t.test('TLS, and mTLS with a certificate of ours', WITH_NATS, async (t) => {
  const folder = await openFolder(t)
  const tls = await createTestCertificates(folder)
  const { caFile, clientCertFile: certFile, clientKeyFile: keyFile } = tls
  const open = await openServer(t, { tls })
  t.ok(await passes(t, brokerAt(open, { tls: { caFile } })))
  t.match(await staysOutside(t, brokerAt(open)), /refused/, 'an unknown authority is not trusted')
  const mutual = await openServer(t, { tls: { ...tls, isClientVerified: true } })
  t.ok(await passes(t, brokerAt(mutual, { tls: { caFile, certFile, keyFile } })))
  await staysOutside(t, brokerAt(mutual, { tls: { caFile } }))
  const plain = await openServer(t, {})
  const downgraded = brokerAt(plain.replace('nats://', 'tls://'))
  t.match(
    await staysOutside(t, downgraded),
    /refused/,
    'never in the clear where TLS was asked for',
  )
})

await t.test(
  'installations and tenants on one broker do not see one another',
  WITH_NATS,
  async (t) => {
    const url = await openServer(t, {})
    const routers = await Promise.all(
      [
        { prefix: 'tutti', repository: 'a' },
        { prefix: 'tutti', repository: 'b' },
        { prefix: 'other', repository: 'a' },
        { prefix: 'tutti', repository: 'a.>' },
      ].map((names) => openTestRouter(t, brokerAt(url, names), 'router')),
    )
    await openTestStep(t, brokerAt(url, { repository: 'a' }), 'step', echo)
    await until(() => routers[0]?.changed.length === 1)
    t.same(
      routers.map((router) => router.changed.length),
      [1, 0, 0, 0],
    )
  },
)

await t.test('options that cannot be are refused, and the error names the field', async (t) => {
  const cases: readonly (readonly [string, BrokerOptions])[] = [
    ['servers', brokerAt('', { servers: [] })],
    ['servers', brokerAt('http://host')],
    ['prefix', brokerAt('nats://host', { prefix: '' })],
    ['repository', brokerAt('nats://host', { repository: '' })],
    ['token', brokerAt('nats://host', { user: 'u', token: () => 't' })],
    ['password', brokerAt('nats://host', { password: () => 'p' })],
    ['nkeyFile', brokerAt('nats://host', { nkeyFile: '/nowhere/seed' })],
    ['credentialsFile', brokerAt('nats://host', { credentialsFile: '/nowhere/creds' })],
    ['tls.caFile', brokerAt('nats://host', { tls: { caFile: '/nowhere/ca' } })],
  ]
  for (const [field, broker] of cases) {
    t.match(await failureOf(openTestStep(t, broker, 'step', echo)), {
      reason: 'SETTING_INVALID',
      details: { field },
    })
  }
  t.match(await failureOf(openTestStep(t, brokerAt('nats://host'), '', echo)), {
    reason: 'INVALID_PARAMETER',
  })
  const settings = { heartbeatMs: 0 }
  t.match(await failureOf(openTestStep(t, brokerAt('nats://h'), 'step', echo, { settings })), {
    reason: 'SETTING_INVALID',
    details: { field: 'heartbeatMs' },
  })
})

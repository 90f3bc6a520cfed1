// needs: nats
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
  usersConfig,
} from '@tutti/chassis/testing'
import t from 'tap'
import type { BrokerOptions } from '../endpoints.ts'
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
  sendTo,
  type Teardown,
  tensorBytes,
  until,
  WITH_NATS,
} from '../testing/endpoints.ts'

const TOKEN = 'authorization { token: right }'
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
  const call = sendTo(router, { replica: 'step' }, envelope(100_000), [ref(bytes)], quiet)
  const [response] = await collect(call)
  await router.member.ask('step', 'describe', {}, quiet)
  return Buffer.from(bytes).equals(response?.outputs[0]?.data ?? new Uint8Array())
}

/** A member with these options stays outside; what its log says. */
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
  // A busy machine may not have been answered once in the time that opening waits.
  await until(() => step.isConnected || lines.length > 0)
  if (step.isConnected) throw new Error('it was let in')
  return lines.join('')
}

/** Subjects that each tenant's user is permitted, and nothing else. */
const OWN = ['tutti.default.>']

await t.test('user and password, with no more than its own subjects', WITH_NATS, async (t) => {
  const users = [{ user: 'u', password: 'right', allow: OWN }]
  const url = await openServer(t, { config: usersConfig(users) })
  t.ok(await passes(t, brokerAt(url, { user: 'u', password: () => 'right' })))
  const log = await staysOutside(t, brokerAt(url, { user: 'u', password: () => 'wrong' }))
  const line = JSON.parse(log.split('\n')[0] ?? '')
  const why = `${url}: authorization violation: the broker does not let in user "u" with this password`
  t.match(line, { message: 'broker cannot be connected, trying on', error: why })
  t.notMatch(log, /wrong/, 'secrets stay out of the log')
  t.match(await staysOutside(t, brokerAt(url)), /does not let in clients that do not sign in/)
})

await t.test('a token, asked for at every connect', WITH_NATS, async (t) => {
  const url = await openServer(t, { config: TOKEN })
  const tokens = ['wrong', 'wrong', 'right']
  t.ok(await passes(t, brokerAt(url, { token: () => tokens.shift() ?? 'right' })))
})

await t.test('an nkey', WITH_NATS, async (t) => {
  const folder = await openFolder(t)
  const [known, stranger] = [createNatsKey(), createNatsKey()]
  const nkeys = [{ nkey: known.publicKey, allow: OWN }]
  const url = await openServer(t, { config: usersConfig(nkeys) })
  const nkeyFile = join(folder, 'seed')
  await writeFile(nkeyFile, `${known.seed}\n`)
  t.ok(await passes(t, brokerAt(url, { nkeyFile })))
  await writeFile(nkeyFile, stranger.seed)
  const refused = /authorization violation: the broker does not let in the nkey in .*seed/
  t.match(await staysOutside(t, brokerAt(url, { nkeyFile })), refused)
  const broker = brokerAt(url, { nkeyFile })
  const late = openTestStep(t, broker, 'late', echo)
  await writeFile(nkeyFile, 'SUnothing')
  t.match(await failureOf(openTestStep(t, broker, 'refused', echo)), {
    reason: 'SETTING_INVALID',
    message: `broker nkeyFile: "${nkeyFile}" holds no seed of a user's nkey, want SU...`,
  })
  await writeFile(nkeyFile, known.seed)
  t.ok((await late).isConnected, 'a file that was bad for a while is read again')
})

await t.test('a credentials file, read again at every connect', WITH_NATS, async (t) => {
  const folder = await openFolder(t)
  const operator = createNatsOperator()
  const url = await openServer(t, { config: operator.config })
  const credentialsFile = join(folder, 'user.creds')
  const expired = { allow: OWN, expiresAtS: 1 }
  await writeFile(credentialsFile, operator.credentials(expired))
  const broker = brokerAt(url, { credentialsFile })
  t.match(await staysOutside(t, broker), /does not let in the credentials in .*user.creds/)
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
  t.match(
    await staysOutside(t, brokerAt(open)),
    /TLS: the certificate of the broker is not trusted/,
  )
  const mutual = await openServer(t, { tls: { ...tls, isClientVerified: true } })
  t.ok(await passes(t, brokerAt(mutual, { tls: { caFile, certFile, keyFile } })))
  const bare = await staysOutside(t, brokerAt(mutual, { tls: { caFile } }))
  t.match(bare, /TLS: the broker wants a client certificate/)
  const other = await createTestCertificates(await openFolder(t))
  const strange = { certFile: other.clientCertFile, keyFile: other.clientKeyFile }
  t.match(
    await staysOutside(t, brokerAt(mutual, { tls: { caFile, ...strange } })),
    /TLS: the broker does not trust the client certificate in .*client.pem/,
  )
  t.match(
    await staysOutside(t, brokerAt(open, { tls: { caFile: other.caFile } })),
    /not trusted: its authority is not among those in .*ca.pem/,
  )
  const plain = await openServer(t, {})
  const downgraded = brokerAt(plain.replace('nats://', 'tls://'))
  t.match(
    await staysOutside(t, downgraded),
    /TLS: it was asked for, and the broker does not offer it/,
    'never in the clear where TLS was asked for',
  )
})

await t.test('every server that was tried is named with its own cause', WITH_NATS, async (t) => {
  const [first, second] = [await startNatsServer({ config: TOKEN }), await startNatsServer()]
  t.teardown(() => first.stop())
  await second.stop()
  const broker = { ...brokerAt(''), servers: [first.url, second.url], token: () => 'wrong' }
  const causes = [
    `${first.url}: authorization violation: the broker does not let in this token`,
    `${second.url}: connection refused: nothing listens there`,
  ].join('; ')
  const settings = { firstConnectMs: 300 }
  const step = await openTestStep(t, broker, 'step', echo, { settings })
  await until(() => step.obstacles.some((obstacle) => obstacle.endsWith(causes)))
  t.same(step.obstacles, [`the broker is not connected: ${causes}`])
})

function credentials(jwt: string, seed: string): string {
  return [
    `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------`,
    `-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`,
  ].join('\n')
}

await t.test(
  'files that do not hold what they should are refused by name',
  WITH_NATS,
  async (t) => {
    const folder = await openFolder(t)
    const [one, two] = [
      await createTestCertificates(folder),
      await createTestCertificates(await openFolder(t)),
    ]
    const file = async (name: string, text: string): Promise<string> => {
      await writeFile(join(folder, name), text)
      return join(folder, name)
    }
    const odd = await file('odd', 'secret words')
    const seed = createNatsKey().seed
    const damaged = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
    const { clientCertFile: certFile, clientKeyFile: keyFile } = one
    const cases: readonly (readonly [Partial<BrokerOptions>, string, RegExp])[] = [
      [{ nkeyFile: odd }, 'nkeyFile', /"[^"]*odd" holds no seed/],
      [
        { credentialsFile: odd },
        'credentialsFile',
        /"[^"]*odd" holds no credentials, want the blocks/,
      ],
      [
        { credentialsFile: await file('c1', credentials('x', seed)) },
        'credentialsFile',
        /holds no JWT/,
      ],
      [
        { credentialsFile: await file('c2', credentials('a.b.c', 'SU')) },
        'credentialsFile',
        /holds no seed/,
      ],
      [{ tls: { caFile: odd } }, 'tls.caFile', /"[^"]*odd" holds no certificate in PEM/],
      [
        { tls: { caFile: await file('ca', damaged) } },
        'tls.caFile',
        /holds a certificate that cannot/,
      ],
      [{ tls: { certFile: odd, keyFile } }, 'tls.certFile', /holds no certificate in PEM/],
      [{ tls: { certFile, keyFile: odd } }, 'tls.keyFile', /holds no private key in PEM/],
      [{ tls: { certFile, keyFile: two.clientKeyFile } }, 'tls.keyFile', /is not the key of the/],
      [{ tls: { certFile } }, 'tls.certFile', /got it alone, want tls.keyFile too/],
    ]
    for (const [o, field, message] of cases) {
      const error = await failureOf(openTestStep(t, brokerAt('nats://host', o), 'step', echo))
      t.match(error, { reason: 'SETTING_INVALID', details: { field }, message })
      t.notMatch(error, /secret words/)
    }
  },
)

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

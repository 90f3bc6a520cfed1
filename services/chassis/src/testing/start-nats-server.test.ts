// needs: nats
import {
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  Events,
  type NatsConnection,
  nkeyAuthenticator,
} from 'nats'
import t, { type Test } from 'tap'
import { withoutNatsServer } from './find-nats-server.ts'
import { createNatsKey, createNatsOperator, type NatsAccess } from './nats-access.ts'
import { type NatsServerOptions, startNatsServer } from './start-nats-server.ts'
import { createTestCertificates } from './test-certificates.ts'

const skip = withoutNatsServer()

async function start(t: Test, o: NatsServerOptions = {}) {
  const server = await startNatsServer(o)
  t.teardown(() => server.stop())
  return server
}

async function open(t: Test, o: ConnectionOptions): Promise<NatsConnection> {
  const connection = await connect({ ...o, reconnectTimeWait: 20, maxReconnectAttempts: -1 })
  t.teardown(() => connection.close())
  return connection
}

function creds(text: string): ConnectionOptions {
  return { authenticator: credsAuthenticator(Buffer.from(text)) }
}

/** Waits for a status of the connection. */
async function statusOf(connection: NatsConnection, wanted: Events): Promise<void> {
  for await (const { type } of connection.status()) if (type === wanted) return
}

/** The code of the error with which a connection is refused. */
async function refusal(o: ConnectionOptions): Promise<string> {
  try {
    const connection = await connect({ ...o, reconnect: false })
    await connection.close()
    return 'none'
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'no code'
  }
}

await t.test('a server answers with default limits and without JetStream', { skip }, async (t) => {
  const server = await start(t)
  const connection = await open(t, { servers: server.url })
  t.equal(connection.info?.max_payload, 1_048_576)
  t.equal(connection.info?.jetstream ?? false, false)
  connection.subscribe('question', { callback: (_, message) => void message.respond('yes') })
  const answer = await connection.request('question')
  t.equal(answer.string(), 'yes')
})

await t.test('servers live side by side, each with its own settings', { skip }, async (t) => {
  const [one, other] = await Promise.all([start(t), start(t, { config: 'max_payload: 4096' })])
  t.not(one.port, other.port)
  const connection = await open(t, { servers: other.url })
  t.equal(connection.info?.max_payload, 4096)
})

await t.test('a killed server comes back on its port', { skip }, async (t) => {
  const server = await start(t)
  const connection = await open(t, { servers: server.url })
  const gone = statusOf(connection, Events.Disconnect)
  const back = statusOf(connection, Events.Reconnect)
  const { pid, port } = server
  await server.kill()
  await gone
  await server.restart()
  await back
  t.not(server.pid, pid)
  t.equal(server.port, port)
  await connection.flush()
})

await t.test('a paused server answers once it is resumed', { skip }, async (t) => {
  const [server, other] = await Promise.all([start(t), start(t)])
  const connection = await open(t, { servers: server.url })
  const order: string[] = []
  server.pause()
  const flushed = connection.flush()
  void flushed.finally(() => order.push('paused server'))
  await open(t, { servers: other.url })
  order.push('other server')
  server.resume()
  await flushed
  t.same(order, ['other server', 'paused server'])
  server.pause()
  await server.stop()
  await server.stop()
})

await t.test('users, tokens and nkeys are let in, strangers are not', { skip }, async (t) => {
  const key = createNatsKey()
  const cases: readonly { access: NatsAccess; good: ConnectionOptions }[] = [
    {
      access: { kind: 'users', users: [{ user: 'a"b', password: 'p\\w' }] },
      good: { user: 'a"b', pass: 'p\\w' },
    },
    { access: { kind: 'token', token: 'secret' }, good: { token: 'secret' } },
    {
      access: { kind: 'nkeys', nkeys: [{ publicKey: key.publicKey }] },
      good: { authenticator: nkeyAuthenticator(Buffer.from(key.seed)) },
    },
  ]
  for (const { access, good } of cases) {
    const server = await start(t, { access })
    const connection = await open(t, { servers: server.url, ...good })
    await connection.flush()
    t.equal(await refusal({ servers: server.url }), 'AUTHORIZATION_VIOLATION', access.kind)
  }
})

await t.test('an operator’s users have what they were granted', { skip }, async (t) => {
  const operator = createNatsOperator()
  const server = await start(t, { access: { kind: 'operator', operator } })
  const connection = await open(t, {
    servers: server.url,
    ...creds(operator.credentials({ allow: ['mine.>'] })),
  })
  await connection.flush()
  const refused = statusOf(connection, Events.Error)
  connection.publish('others.subject')
  await refused

  const late = creds(operator.credentials({ expiresAtS: 2 }))
  t.equal(await refusal({ servers: server.url, ...late }), 'AUTHORIZATION_VIOLATION')
  const stranger = creds(createNatsOperator().credentials())
  t.equal(await refusal({ servers: server.url, ...stranger }), 'AUTHORIZATION_VIOLATION')
})

await t.test('TLS: the server is verified, and with mTLS the client', { skip }, async (t) => {
  const certificates = await createTestCertificates(t.testdir())
  const { caFile, clientCertFile: certFile, clientKeyFile: keyFile } = certificates
  const server = await start(t, { tls: certificates })
  await open(t, { servers: server.url, tls: { caFile } })
  t.not(await refusal({ servers: server.url, tls: {} }), 'none', 'the authority is not known')

  const mutual = await start(t, { tls: { ...certificates, isClientVerified: true } })
  await open(t, { servers: mutual.url, tls: { caFile, certFile, keyFile } })
  t.not(await refusal({ servers: mutual.url, tls: { caFile } }), 'none', 'no certificate')
})

await t.test('a server that does not start says why', { skip }, async (t) => {
  await t.rejects(startNatsServer({ config: 'max_payload: many' }), {
    message: /nats\.conf:2:1: interface conversion/,
  })
  const { port } = await start(t)
  await t.rejects(startNatsServer({ port }), { message: /address already in use/ })
})

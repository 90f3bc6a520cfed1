// needs: nats
import { createServer, type Socket } from 'node:net'
import { createTestCertificates, startNatsServer, withoutNatsServer } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import type { EndpointSettings } from '../endpoint-settings.ts'
import type { BrokerOptions, StepEndpoint } from '../endpoints.ts'
import { brokerAt, echo, openTestStep, until } from '../testing/endpoints.ts'
import { describeConnectFailure } from './connect-failure.ts'

/** A server that does this with every connection. */
async function serve(t: Test, act: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    act(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address()
  return `nats://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
}

/** A member that stays outside, once it says why: a busy machine may not have heard a thing when it opens. */
async function openOutside(
  t: Test,
  broker: BrokerOptions,
  settings: Partial<EndpointSettings> = {},
): Promise<StepEndpoint> {
  const o = { settings: { firstConnectMs: 100, ...settings } }
  const step = await openTestStep(t, broker, 'step', echo, o)
  await until(() => step.obstacles[0]?.startsWith('the broker is not connected: ') === true)
  return step
}

await t.test('what answers, or does not, without being a broker', async (t) => {
  const silent = await serve(t, () => {})
  const cases: [string, RegExp, Partial<EndpointSettings>?][] = [
    [silent, /: timeout: no answer within 100 ms$/, { connectMs: 100 }],
    [
      await serve(t, (socket) => socket.end('HTTP/1.1 400 Bad\r\n\r\n')),
      /: what answers is no NATS server/,
    ],
    [await serve(t, (socket) => socket.destroy()), /: the connection was closed while it was made/],
    [
      'nats://nowhere.invalid:4222',
      /: (no such host|the name of the host cannot)/,
      { connectMs: 60_000 },
    ],
  ]
  for (const [server, message, settings] of cases) {
    const step = await openOutside(t, brokerAt(server), settings)
    t.match(step.obstacles, [message])
    t.ok(step.obstacles[0]?.startsWith(`the broker is not connected: ${server}: `))
  }
})

await t.test('attempts that fail leave no socket behind', async (t) => {
  const open = new Set<Socket>()
  let attempts = 0
  const silent = await serve(t, (socket) => {
    attempts += 1
    open.add(socket.on('close', () => open.delete(socket)).resume())
  })
  await openOutside(t, brokerAt(silent), { connectMs: 50 })
  await until(() => attempts > 10)
  // Those of the two connections that are under way.
  await until(() => open.size <= 2)
  t.ok(open.size <= 2, `${open.size} of ${attempts}`)
})

await t.test('a certificate for another name', { skip: withoutNatsServer() }, async (t) => {
  const certificates = await createTestCertificates(t.testdir())
  // The server's certificate is the client's, which has no names.
  const { caFile, clientCertFile: certFile, clientKeyFile: keyFile } = certificates
  const server = await startNatsServer({ tls: { ...certificates, certFile, keyFile } })
  t.teardown(() => server.stop())
  const broker = brokerAt(server.url, { tls: { caFile } })
  const step = await openOutside(t, broker)
  t.match(step.obstacles, [/: TLS: hostname mismatch: Hostname\/IP does not match/])
})

const coded = (code: string): Error => Object.assign(new Error('cryptic'), { code })

await t.test('codes of the client and of Node become words', async (t) => {
  const broker = brokerAt('nats://host', { user: 'u', password: () => 'p' })
  const say = (error: unknown): string => describeConnectFailure(error, broker, 2000)
  const cases: [unknown, string][] = [
    [coded('TIMEOUT'), 'timeout: no answer within 2000 ms'],
    [coded('ECONNREFUSED'), 'connection refused: nothing listens there'],
    [
      coded('AUTHENTICATION_EXPIRED'),
      'the broker says that user "u" with this password has expired',
    ],
    [coded('ACCOUNT_EXPIRED'), 'the account has expired'],
    [coded('EHOSTUNREACH'), 'no way to this address'],
    [coded('CERT_HAS_EXPIRED'), 'TLS: the certificate of the broker has expired'],
    [Object.assign(coded('ERR_SSL_X'), { reason: 'no shared cipher' }), 'TLS: no shared cipher'],
    [coded('ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE'), 'TLS: the broker wants a client certificate'],
    [new Error('else'), 'else'],
    ['text', 'text'],
  ]
  for (const [error, words] of cases) t.equal(say(error), words)
})

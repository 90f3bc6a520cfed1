import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { silentLogger, systemClock } from '@tutti/chassis'
import { createTestCertificates } from '@tutti/chassis/testing'
import t from 'tap'
import type { ClusterAccess, Credentials } from './cluster-access.ts'
import { createTransport } from './create-transport.ts'
import type { Transport } from './transport.ts'

const GET = { method: 'GET', path: '/', isIdempotent: false } as const

const read = (file: string): string => readFileSync(file, 'utf8')

await t.test('over TLS', async (t) => {
  const files = await createTestCertificates(t.testdir())
  const ca = read(files.caFile)
  const client = { cert: read(files.clientCertFile), key: read(files.clientKeyFile) }
  const connections = new Set<unknown>()
  const tls = { cert: read(files.certFile), key: read(files.keyFile), ca, requestCert: true }
  const server = createServer({ ...tls, rejectUnauthorized: false }, (request, response) => {
    const socket = request.socket as TLSSocket
    connections.add(socket)
    response.end(JSON.stringify({ isKnown: socket.authorized, name: socket.servername }))
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const open = (credentials: () => Credentials, more: Partial<ClusterAccess> = {}): Transport => {
    const transport = createTransport(
      {
        server: new URL(`https://127.0.0.1:${port}`),
        credentials: () => Promise.resolve(credentials()),
        refresh: () => {},
        ...more,
      },
      { clock: systemClock, log: silentLogger, userAgent: 'test' },
    )
    t.teardown(() => transport.close())
    return transport
  }

  await t.test('the server is held to the authority', async (t) => {
    await open(() => ({ ca })).request(GET)
    await t.rejects(open(() => ({})).request(GET), /self-signed|unable to/)
    const other = await createTestCertificates(t.testdir())
    await t.rejects(
      open(() => ({ ca: read(other.caFile) })).request(GET),
      /self-signed|unable to|signature/,
    )
    await open(() => ({}), { isServerUnverified: true }).request(GET)
  })

  await t.test('the certificate has the name that is asked for', async (t) => {
    const named = open(() => ({ ca }), { serverName: 'localhost' })
    t.match((await named.request(GET)).body, { name: 'localhost' })
    const wrong = open(() => ({ ca }), { serverName: 'elsewhere.example' })
    await t.rejects(wrong.request(GET), { message: /elsewhere\.example/ })
  })

  await t.test('other certificates begin with other connections', async (t) => {
    let credentials: Credentials = { ca }
    const transport = open(() => credentials)
    connections.clear()
    t.match((await transport.request(GET)).body, { isKnown: false })
    credentials = { ca, ...client }
    t.match((await transport.request(GET)).body, { isKnown: true })
    credentials = { ca, ...client, authorization: 'Bearer new' }
    t.match((await transport.request(GET)).body, { isKnown: true })
    t.equal(connections.size, 2, 'a new token goes over the connection that is there')
  })
})

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { createTestAuthority } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { readClientCertificate, splitNames } from './client-certificate.ts'

const textsOf = ({ cert, key }: { readonly cert: string; readonly key: string }) => ({
  cert: readFileSync(cert),
  key: readFileSync(key),
})

/** The server's side of a connection for each client, in their order. */
async function connectAll(
  t: Test,
  server: object,
  clients: readonly object[],
): Promise<readonly TLSSocket[]> {
  const listener = createServer(server)
  t.teardown(() => listener.close())
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const sockets: TLSSocket[] = []
  for (const client of clients) {
    const accepted = once(listener, 'secureConnection')
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a listening TCP server has this kind of address
    const { port } = listener.address() as { readonly port: number }
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...client })
    socket.on('error', () => {})
    const [theirs] = await accepted
    sockets.push(theirs)
    t.teardown(() => socket.destroy())
    t.teardown(() => theirs.destroy())
  }
  return sockets
}

await t.test('a client has the names of its certificate, each with its kind', async (t) => {
  const { caFile, issue } = await createTestAuthority(t.testdir())
  const ca = readFileSync(caFile)
  const cases: readonly [{ subject?: string; names?: string[] }, readonly string[]][] = [
    [{ subject: '/CN=alice' }, ['CN:alice']],
    [{ subject: '/O=acme/CN=alice/CN=bob' }, ['CN:alice', 'CN:bob']],
    [{ subject: '/O=acme' }, []],
    [{ subject: '/CN=spiffe:\\/\\/td\\/admin' }, ['CN:spiffe://td/admin']],
    [
      { subject: '/O=x', names: ['URI:spiffe://td/ns/a/sa/b', 'DNS:a.example', 'IP:10.0.0.1'] },
      ['URI:spiffe://td/ns/a/sa/b', 'DNS:a.example', 'IP Address:10.0.0.1'],
    ],
    [
      { subject: '/CN=a, DNS:admin', names: ['email:a@b.example'] },
      ['CN:a, DNS:admin', 'email:a@b.example'],
    ],
  ]
  const clients = []
  for (const [i, [o]] of cases.entries()) clients.push(textsOf(await issue(`client${i}`, o)))
  const server = textsOf(await issue('server'))
  const mutual = { ...server, ca, requestCert: true }
  const sockets = await connectAll(t, mutual, clients)
  for (const [i, [, names]] of cases.entries()) {
    const socket = sockets[i]
    const certificate = socket && readClientCertificate(socket)
    t.same(certificate?.names, names, String(names))
    t.ok(certificate && certificate.validToMs > Date.now())
  }
})

await t.test('a part of a name is no name', async (t) => {
  // As Node writes those of `URI:spiffe://td/a, DNS:admin` and `DNS:x", URI:y`.
  const text = String.raw`URI:"spiffe://td/a\u002c DNS:admin", DNS:"x\"\u002c URI:y", DNS:b`
  t.same(splitNames(text), ['URI:spiffe://td/a, DNS:admin', 'DNS:x", URI:y', 'DNS:b'])
  for (const broken of ['DNS:"a', 'DNS:a"b, DNS:c', 'DNS', ', DNS:a', 'DNS:"\\x", DNS:a']) {
    t.same(splitNames(broken), [], broken)
  }
})

await t.test('a client without a certificate that was verified has no names', async (t) => {
  const folder = t.testdir()
  const { issue } = await createTestAuthority(folder)
  const stranger = await createTestAuthority(folder, 'other')
  const client = textsOf(await stranger.issue('stranger'))
  const server = textsOf(await issue('server'))
  const [none] = await connectAll(t, server, [client])
  t.same(none && readClientCertificate(none), undefined, 'the server asks for none')
  const lax = { ...server, requestCert: true, rejectUnauthorized: false }
  const [stranger1, silent] = await connectAll(t, lax, [client, {}])
  t.same(stranger1 && readClientCertificate(stranger1), undefined, 'another authority signed it')
  t.same(silent && readClientCertificate(silent), undefined, 'the client shows none')
  t.same(readClientCertificate({}), undefined, 'no TLS')
})

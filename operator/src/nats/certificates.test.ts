import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, createSecureContext, createServer } from 'node:tls'
import t from 'tap'
import {
  createAuthority,
  isAuthority,
  isServerCertificateGood,
  issueServerCertificate,
} from './certificates.ts'

const DAY_MS = 86_400_000
const NOW_MS = Date.now()
const HOSTS = ['tutti-nats.tutti-system.svc', '*.tutti-nats.tutti-system.svc', '127.0.0.1']
const TIMES = { nowMs: NOW_MS, lifetimeMs: 365 * DAY_MS }
const authority = createAuthority({ nowMs: NOW_MS, lifetimeMs: 20 * 365 * DAY_MS })
const server = issueServerCertificate(authority, HOSTS, TIMES)

await t.test('the certificate is for these hosts and this time, and of the authority', (t) => {
  const [read, ca] = [
    new X509Certificate(server.certificate),
    new X509Certificate(authority.certificate),
  ]
  t.ok(read.checkIssued(ca))
  t.ok(read.verify(ca.publicKey))
  t.equal(read.ca, false)
  t.equal(ca.ca, true)
  t.ok(read.checkHost('tutti-nats.tutti-system.svc'))
  t.ok(read.checkHost('a.tutti-nats.tutti-system.svc'))
  t.ok(read.checkIP('127.0.0.1'))
  t.notOk(read.checkHost('tutti-nats.other.svc'))
  t.ok(Math.abs(read.validToDate.getTime() - NOW_MS - TIMES.lifetimeMs) < 1000)
  t.ok(read.validFromDate.getTime() < NOW_MS, 'clocks of others may be behind')
  t.equal(isAuthority(authority), true)
  t.equal(isAuthority(server), false)
  t.end()
})

await t.test('openssl has nothing to say against it, for servers and for clients', (t) => {
  const folder = t.testdir()
  const [ca, leaf] = [join(folder, 'ca.pem'), join(folder, 'leaf.pem')]
  writeFileSync(ca, authority.certificate)
  writeFileSync(leaf, server.certificate)
  for (const purpose of ['sslserver', 'sslclient']) {
    const args = ['verify', '-x509_strict', '-purpose', purpose, '-CAfile', ca, leaf]
    t.match(execFileSync('openssl', args, { encoding: 'utf8' }), /: OK/)
  }
  t.end()
})

await t.test('TLS takes it where the host is one of its own, and nowhere else', async (t) => {
  const { certificate: cert, key } = server
  const listener = createServer({ cert, key }, (socket) => socket.end('hello'))
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  t.teardown(() => listener.close())
  const address = listener.address()
  const port = typeof address === 'object' ? Number(address?.port) : 0
  const ask = (servername: string, ca = authority.certificate): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', servername, ca })
      socket.on('data', (bytes) => resolve(String(bytes))).on('error', reject)
    })
  t.equal(await ask('x.tutti-nats.tutti-system.svc'), 'hello')
  await t.rejects(ask('localhost'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
  const other = createAuthority(TIMES)
  await t.rejects(ask('tutti-nats.tutti-system.svc', other.certificate), {
    code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  })
})

await t.test('it is good for two thirds of its life, and only if it is what is wanted', (t) => {
  const other = createAuthority(TIMES)
  const good = (
    pair = server,
    o: {
      readonly hosts?: readonly string[]
      readonly nowMs?: number
      readonly of?: typeof other
    } = {},
  ): boolean =>
    isServerCertificateGood(pair, o.of ?? authority, { hosts: HOSTS, nowMs: NOW_MS, ...o })
  t.equal(good(), true)
  t.equal(good(server, { nowMs: NOW_MS + 240 * DAY_MS }), true)
  t.equal(good(server, { nowMs: NOW_MS + 245 * DAY_MS }), false)
  t.equal(good(server, { nowMs: NOW_MS - DAY_MS }), false, 'a clock that went back')
  t.equal(good(server, { hosts: HOSTS.slice(1) }), false)
  t.equal(good(server, { of: other }), false)
  t.equal(good({ ...server, key: other.key }), false)
  t.equal(good({ certificate: '', key: '' }), false)
  t.equal(good({ ...server, certificate: server.certificate.replace('M', 'N') }), false)
  t.end()
})

await t.test('times from 2050 on are written another way', (t) => {
  const late = createAuthority({ nowMs: NOW_MS, lifetimeMs: 40 * 365 * DAY_MS })
  const { validToDate } = new X509Certificate(late.certificate)
  t.ok(Math.abs(validToDate.getTime() - NOW_MS - 40 * 365 * DAY_MS) < 1000)
  t.ok(createSecureContext({ ca: late.certificate }))
  t.end()
})

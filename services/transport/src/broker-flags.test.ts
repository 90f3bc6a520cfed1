import { join } from 'node:path'
import { parseFlags } from '@tutti/chassis'
import { createNatsKey, createNatsOperator, createTestCertificates } from '@tutti/chassis/testing'
import t from 'tap'
import { BROKER_FLAGS, DIRECT_LISTENER_FLAGS, readBrokerFlags } from './broker-flags.ts'

const readAll = (...argv: string[]) => readBrokerFlags(parseFlags(BROKER_FLAGS, argv).values)
const read = (...argv: string[]) => readAll(...argv).broker
const SERVER = '--nats=nats://broker:4222'

await t.test('the defaults name the installation and the repository', async (t) => {
  t.same(read(SERVER, '--nats=tls://other:4222'), {
    servers: ['nats://broker:4222', 'tls://other:4222'],
    prefix: 'tutti',
    repository: 'default',
  })
})

await t.test('secrets are read from files, each time anew', async (t) => {
  const { seed } = createNatsKey()
  const creds = createNatsOperator().credentials()
  const dir = t.testdir({ password: 'pa ss\n', token: 'tok', seed, creds })
  const file = (name: string): string => join(dir, name)
  const user = read(SERVER, '--nats-user=u', `--nats-password-file=${file('password')}`)
  t.equal(user.user, 'u')
  t.equal(user.password?.(), 'pa ss')
  t.equal(read(SERVER, `--nats-token-file=${file('token')}`).token?.(), 'tok')
  t.match(read(SERVER, `--nats-nkey-file=${file('seed')}`), { nkeyFile: file('seed') })
  t.match(read(SERVER, `--nats-creds-file=${file('creds')}`), { credentialsFile: file('creds') })
})

await t.test('TLS and mTLS', async (t) => {
  const files = await createTestCertificates(t.testdir())
  const { caFile: ca, clientCertFile: cert, clientKeyFile: key } = files
  t.same(read(SERVER, `--nats-tls-ca=${ca}`).tls, { caFile: ca })
  t.same(
    read(SERVER, `--nats-tls-ca=${ca}`, `--nats-tls-cert=${cert}`, `--nats-tls-key=${key}`).tls,
    { caFile: ca, certFile: cert, keyFile: key },
  )
})

await t.test('what is refused is named, and no secret is repeated', async (t) => {
  const dir = t.testdir({ empty: '\n', some: 'x' })
  const some = join(dir, 'some')
  const cases: [readonly string[], RegExp][] = [
    [[], /^--nats: got none/],
    [['--nats=broker'], /^--nats: "broker", want nats:\/\/HOST:PORT/],
    [['--nats=http://broker'], /^--nats: "http:\/\/broker", want/],
    [
      ['--nats=nats://u:secret@broker'],
      /^--nats: "nats:\/\/\[redacted\]@broker" holds credentials/,
    ],
    [[SERVER, '--nats-user=u'], /^--nats-user: got it alone/],
    [[SERVER, `--nats-password-file=${some}`], /^--nats-password-file: got it alone/],
    [
      [SERVER, `--nats-token-file=${some}`, `--nats-nkey-file=${some}`],
      /^--nats-nkey-file: got it beside --nats-token-file/,
    ],
    [
      [SERVER, `--nats-token-file=${join(dir, 'none')}`],
      /^--nats-token-file: ".*none" cannot be read: ENOENT/,
    ],
    [[SERVER, `--nats-token-file=${join(dir, 'empty')}`], /^--nats-token-file: ".*" is empty/],
    [[SERVER, `--nats-tls-cert=${some}`], /^--nats-tls-cert: got it alone/],
    [[SERVER, `--nats-tls-key=${some}`], /^--nats-tls-key: got it alone/],
    [['--nats=nats://broker:4222/a'], /^--nats: "nats:\/\/broker:4222\/a", want nats:/],
    [[SERVER, `--nats-nkey-file=${some}`], /^--nats-nkey-file: ".*some" holds no seed of a user's/],
    [[SERVER, `--nats-creds-file=${some}`], /^--nats-creds-file: ".*some" holds no credentials/],
    [[SERVER, `--nats-tls-ca=${some}`], /^--nats-tls-ca: ".*some" holds no certificate in PEM/],
    [[SERVER, '--nats-prefix='], /^--nats-prefix: subject prefix "": it is empty, want 1 to 128/],
    [[SERVER, '--nats-prefix=$SYS'], /^--nats-prefix: .*want one that NATS does not use itself/],
    [[SERVER, `--repository-name=${'é'.repeat(65)}`], /^--repository-name: .*it has 130 bytes/],
  ]
  for (const [argv, message] of cases) {
    t.throws(() => read(...argv), { reason: 'FLAG_INVALID', message }, argv.join(' '))
  }
  t.notMatch(
    t.throws(() => read('--nats=nats://u:secret@broker')),
    /secret@/,
  )
})

await t.test('direct connections are off, or of one kind with what it needs', async (t) => {
  const table = { ...BROKER_FLAGS, ...DIRECT_LISTENER_FLAGS }
  const step = (...argv: string[]) =>
    readBrokerFlags(parseFlags(table, [SERVER, ...argv]).values).direct
  t.equal(readAll(SERVER).direct, undefined)
  t.equal(step('--direct=off'), undefined)
  const sockets = { kind: 'unix', directory: '/run/tutti' }
  const unix = ['--direct=unix', '--direct-directory=/run/tutti/']
  t.same([readAll(SERVER, ...unix).direct, step(...unix)], [sockets, sockets])
  t.same(readAll(SERVER, '--direct=tls').direct, { kind: 'tls' })
  const listen = { host: '10.0.0.3', port: 8004 }
  t.same(step('--direct=TLS', '--direct-address=10.0.0.3:8004'), { kind: 'tls', listen })
  const six = { kind: 'tcp', listen: { host: 'fd00::3', port: 0 } }
  t.same(step('--direct=tcp', '--direct-address=[fd00::3]:0'), six)
  const refused: [string[], string][] = [
    [['--direct=unix'], '--direct-directory: got none, want an absolute path for --direct unix'],
    [['--direct=unix', '--direct-directory=x'], '--direct-directory: got "x", want an absolute'],
    [
      ['--direct=unix', `--direct-directory=/${'x'.repeat(85)}`],
      '--direct-directory: got a path of 86 bytes, want at most 85',
    ],
    [['--direct-directory=/x'], '--direct-directory: got it with --direct off, want --direct unix'],
    [['--direct=tls', '--direct-directory=/x', '--direct-address=h:1'], 'got it with --direct tls'],
    [['--direct=tls'], '--direct-address: got none, want HOST:PORT for --direct tls'],
    [['--direct=tcp', '--direct-address=h'], '--direct-address: got "h", want HOST:PORT'],
    [['--direct=tcp', '--direct-address=h:65536'], 'got "h:65536"'],
    [['--direct=tcp', '--direct-address=::1:80'], 'got "::1:80"'],
    [['--direct-address=h:1'], '--direct-address: got it with --direct off, want --direct tls'],
    [[...unix, '--direct-address=h:1'], 'got it with --direct unix, want --direct tls or tcp'],
  ]
  for (const [argv, message] of refused) {
    t.throws(() => step(...argv), { reason: 'FLAG_INVALID', message })
  }
})

import { join } from 'node:path'
import { parseFlags } from '@tutti/chassis'
import { createManualClock, createTestAuthority } from '@tutti/chassis/testing'
import { checkTlsFlags, readSecureOptions } from '@tutti/serving'
import t from 'tap'
import { SERVER_FLAGS } from '../server-flags.ts'

const DAY_MS = 86_400_000

const at = (days: number) => createManualClock({ epochMs: Date.now() + days * DAY_MS })

await t.test('files that cannot be used are refused by the name of their flag', async (t) => {
  const folder = t.testdir({ 'text.pem': 'no PEM', 'empty.pem': '' })
  const { caFile, issue } = await createTestAuthority(folder)
  const { cert, key } = await issue('server')
  const other = await issue('other')
  const [text, empty, none] = ['text.pem', 'empty.pem', 'none.pem'].map((name) =>
    join(folder, name),
  )
  const cases: readonly [object, string, RegExp][] = [
    [{ cert: none }, 'server-cert', /"\S+none\.pem" cannot be read: ENOENT/],
    [{ key: none }, 'server-key', /"\S+none\.pem" cannot be read: ENOENT/],
    [{ root: none }, 'root-cert', /"\S+none\.pem" cannot be read: ENOENT/],
    [{ cert: folder }, 'server-cert', /cannot be read: EISDIR/],
    [{ cert: text }, 'server-cert', /"\S+text\.pem" holds no certificate in PEM$/],
    [{ cert: empty }, 'server-cert', /holds no certificate in PEM$/],
    [{ cert: key }, 'server-cert', /holds no certificate in PEM$/],
    [{ key: cert }, 'server-key', /"\S+server\.pem" holds no private key in PEM$/],
    [{ root: text }, 'root-cert', /"\S+text\.pem" holds no certificate in PEM$/],
    [
      { key: other.key },
      'server-key',
      /other\.key" is not the key of the certificate in "\S+server/,
    ],
  ]
  for (const [change, flag, message] of cases) {
    const files = { cert, key, root: caFile, ...change }
    const argv = [
      '--grpc-use-ssl-mutual',
      `--grpc-server-cert=${files.cert}`,
      `--grpc-server-key=${files.key}`,
      `--grpc-root-cert=${files.root}`,
    ]
    const { values } = parseFlags(SERVER_FLAGS, argv)
    const field = `--grpc-${flag}`
    t.throws(
      () => checkTlsFlags(values),
      { reason: 'FLAG_INVALID', message, details: { field } },
      `${field} ${String(message)}`,
    )
  }
  const tls = ['--metrics-use-ssl', `--metrics-server-cert=${cert}`, `--metrics-server-key=${key}`]
  t.doesNotThrow(() => checkTlsFlags(parseFlags(SERVER_FLAGS, tls).values))
})

await t.test('a certificate is refused outside its time', async (t) => {
  const { issue } = await createTestAuthority(t.testdir())
  const files = { listener: 'http', ...(await issue('server')) } as const
  t.ok(readSecureOptions(files, at(1)))
  t.throws(() => readSecureOptions(files, at(3)), {
    message: /^--http-server-cert: the certificate in "\S+server\.pem" has expired at 20\d\d-/,
  })
  t.throws(() => readSecureOptions(files, at(-1)), {
    message: /^--http-server-cert: the certificate in "\S+server\.pem" is not valid before 20\d\d-/,
  })
})

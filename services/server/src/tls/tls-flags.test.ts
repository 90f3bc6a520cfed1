import { type FlagTable, parseFlags } from '@tutti/chassis'
import { type TlsListener, toTlsFiles } from '@tutti/serving'
import t from 'tap'
import { SERVER_FLAGS } from '../server-flags.ts'

const LISTENERS: readonly TlsListener[] = ['grpc', 'http', 'metrics']

function read(listener: TlsListener, ...flags: readonly string[]) {
  const { values } = parseFlags(
    SERVER_FLAGS,
    flags.map((flag) => `--${listener}-${flag}`),
  )
  return toTlsFiles(values, listener)
}

await t.test('each listener has the flags that tritonserver has for gRPC', async (t) => {
  const names = ['use-ssl', 'use-ssl-mutual', 'server-cert', 'server-key', 'root-cert']
  const table: FlagTable = SERVER_FLAGS
  for (const listener of LISTENERS) {
    for (const name of names) t.ok(table[`${listener}-${name}`], `--${listener}-${name}`)
    t.equal(read(listener), undefined, 'off by default')
    t.equal(read(listener, 'use-ssl=false'), undefined)
    const pair = { listener, cert: 'c', key: 'k' }
    t.same(read(listener, 'use-ssl', 'server-cert=c', 'server-key=k'), pair)
    const mutual = ['use-ssl-mutual', 'server-cert=c', 'server-key=k', 'root-cert=r']
    t.same(read(listener, ...mutual), { ...pair, root: 'r' })
    t.same(read(listener, 'use-ssl', ...mutual), { ...pair, root: 'r' })
    t.same(read(listener, 'use-ssl=0', ...mutual), { ...pair, root: 'r' }, 'as tritonserver does')
  }
})

await t.test('flags that do not fit together are refused by name', async (t) => {
  const cases: readonly [readonly string[], string, string][] = [
    [['use-ssl', 'server-key=k'], 'server-cert', 'got none with --$-use-ssl, want a PEM file'],
    [['use-ssl', 'server-cert=c'], 'server-key', 'got none with --$-use-ssl, want a PEM file'],
    [['server-cert=c', 'server-key=k'], 'server-cert', 'got it without --$-use-ssl'],
    [['server-key=k'], 'server-key', 'got it without --$-use-ssl'],
    [['root-cert=r'], 'root-cert', 'got it without --$-use-ssl-mutual'],
    [
      ['use-ssl', 'server-cert=c', 'server-key=k', 'root-cert=r'],
      'root-cert',
      'got it without --$-use-ssl-mutual',
    ],
    [
      ['use-ssl-mutual', 'server-cert=c', 'server-key=k'],
      'root-cert',
      'got none with --$-use-ssl-mutual, want a PEM file',
    ],
  ]
  for (const listener of LISTENERS) {
    for (const [flags, name, problem] of cases) {
      const field = `--${listener}-${name}`
      const message = `${field}: ${problem.replace('$', listener)}`
      const want = { reason: 'FLAG_INVALID', message, details: { field } }
      t.throws(() => read(listener, ...flags), want, message)
    }
  }
})

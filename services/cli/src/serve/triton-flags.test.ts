import { parseFlags } from '@tutti/chassis'
import t from 'tap'
import { SERVE_FLAGS } from './serve-flags.ts'
import { TRITONSERVER_FLAGS } from './testing/tritonserver-flags.ts'
import { checkTritonFlags } from './triton-flags.ts'

const NAMES = new Map(
  Object.entries(SERVE_FLAGS).flatMap(([name, spec]) => {
    const aliases: readonly string[] = 'aliases' in spec ? spec.aliases : []
    return [name, ...aliases].map((alias) => [alias, spec] as const)
  }),
)

await t.test('every flag of tritonserver 2.51 is known, with the type that it has there', (t) => {
  t.equal(TRITONSERVER_FLAGS.length, 86)
  for (const [name, takes] of TRITONSERVER_FLAGS) {
    const type = NAMES.get(name)?.type
    const want = takes === '<boolean>' || takes === '' ? 'bool' : takes === '<integer>' ? 'int' : ''
    if (want === '') t.ok(type === 'string' || type === 'enum', name)
    else t.equal(type, want, name)
  }
  t.end()
})

await t.test('a flag without effect has no default, and says what happens instead', (t) => {
  const ignored = Object.entries(SERVE_FLAGS).filter(([, spec]) => 'isIgnored' in spec)
  t.ok(ignored.length > 20)
  for (const [name, spec] of ignored) {
    t.notOk('default' in spec, name)
    t.match(spec.description, /^No effect: ./, name)
  }
  t.end()
})

function read(...words: string[]): void {
  checkTritonFlags(parseFlags(SERVE_FLAGS, words).values)
}

await t.test('what is not offered is refused when it is asked for', (t) => {
  read(
    '--model-namespacing=false',
    '--allow-sagemaker',
    'false',
    '--cuda-memory-pool-byte-size=0:1',
  )
  for (const name of ['allow-sagemaker', 'allow-vertex-ai']) {
    const message = `--${name}: got true, want false: it is not offered`
    t.throws(() => read(`--${name}=true`), { reason: 'FLAG_INVALID', message })
  }
  t.end()
})

await t.test('namespaces are repositories, and what stands in none is refused', (t) => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['--filename=m.yaml', /^--model-namespacing: got true with --filename, want false: a model/],
    ['--model-repository=/a::b', /^--model-repository: got "\/a::b", want no "::" with/],
  ]
  for (const [word, message] of cases) {
    read(word)
    t.throws(() => read('--model-namespacing=true', word), { reason: 'FLAG_INVALID', message })
  }
  read('--model-namespacing=true', '--model-repository=/a', '--model-repository=s3://bucket/b')
  t.end()
})

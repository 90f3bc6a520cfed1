import * as fc from 'fast-check'
import t from 'tap'
import { checkOverrides, toConfigText } from './load-overrides.ts'

const bytes = new Uint8Array()

function check(...paths: readonly string[]): void {
  checkOverrides({ config: '{}', files: new Map(paths.map((path) => [path, bytes])) })
}

await t.test('a config in JSON becomes one in the text format', async (t) => {
  t.equal(toConfigText('{"maxBatchSize": 4, "backend": "b"}'), 'backend: "b"\nmax_batch_size: 4\n')
  for (const json of ['', '{', '[]', '5', 'null', '{"max_batchsize": 1}', '{"name": 5}']) {
    t.throws(() => toConfigText(json), {
      reason: 'CONFIG_SYNTAX',
      message: /^Invalid config override: /,
    })
  }
})

await t.test('a config that would take long to read is refused', async (t) => {
  const cases = [
    [`{"name": "${'x'.repeat(256 * 1024)}"}`, /has 262156 characters, want at most 262144/],
    [`{"input": [${'{},'.repeat(5000)}{}]}`, /has 5003 objects and arrays, want at most 4096/],
    ['['.repeat(200_000), /has 200000 objects and arrays/],
  ] as const
  for (const [json, message] of cases) {
    t.throws(() => toConfigText(json), { reason: 'MESSAGE_TOO_LARGE', message })
  }
})

await t.test('files need a config', async (t) => {
  const files = new Map([['1/m', bytes]])
  t.throws(() => checkOverrides({ files }), {
    reason: 'INVALID_PARAMETER',
    message: "Load parameter 'config' must be specified for model file override",
  })
  t.doesNotThrow(() => checkOverrides({ files: new Map() }))
})

await t.test('a path that leads out, or is no path, is refused by name', async (t) => {
  const bad = [
    '',
    '/',
    '/etc/passwd',
    '..',
    '../m',
    '1/../../m',
    '1/..',
    '1/./m',
    '1//m',
    '1/m/',
    '1\\m',
    '1/\0',
    '1/a\nb',
    `1/${'x'.repeat(256)}`,
    `1/${'ä'.repeat(128)}`,
    'x/'.repeat(32) + 'm',
    'x'.repeat(1025),
  ]
  for (const path of bad) {
    t.throws(() => check(path), { reason: 'INVALID_PARAMETER', message: /^load parameter 'file:/ })
  }
  const good = ['1/model.onnx', 'labels.txt', '1/model.onnx/data', 'config.pbtxt', '1/ä b']
  t.doesNotThrow(() => check(...good.filter((path) => path !== '1/model.onnx')))
  t.throws(() => check(...good), { message: /'file:1\/model.onnx': another file lies in it/ })
})

await t.test('what is accepted stays below the directory, whatever it is', async (t) => {
  const segment = fc.oneof(fc.constantFrom('..', '.', '', '1', 'a'), fc.string({ maxLength: 5 }))
  const path = fc.array(segment, { maxLength: 5 }).map((segments) => segments.join('/'))
  fc.assert(
    fc.property(path, (candidate) => {
      try {
        check(candidate)
      } catch {
        return
      }
      const { pathname } = new URL(
        `file:///model/${encodeURIComponent(candidate).replaceAll('%2F', '/')}`,
      )
      if (!pathname.startsWith('/model/') || pathname === '/model/') throw new Error(candidate)
    }),
    { numRuns: 500 },
  )
  t.pass()
})

await t.test('there are at most 4096 files', async (t) => {
  const many = Array.from({ length: 4097 }, (_, i) => `1/${i}`)
  t.throws(() => check(...many), { message: 'got 4097 files, want at most 4096' })
})

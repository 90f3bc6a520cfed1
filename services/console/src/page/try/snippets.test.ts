import { execFileSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { encodeBytesTensor } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { inferJson } from './infer-body.ts'
import type { RequestInput } from './request-input.ts'
import { curlLines, pythonLines, type SnippetSource, sharedFile } from './snippets.ts'

const SOURCE: SnippetSource = {
  model: 'm',
  version: '',
  inputs: [],
  outputs: ['y'],
  isBinaryAnswer: false,
  isSecure: false,
  host: 'localhost:8000',
  hasToken: false,
}
const JSON_INPUT: RequestInput = {
  name: "it's",
  datatype: 'BYTES',
  shape: [1],
  content: { kind: 'json', text: '["true $HOME `id` \'q\'", "a"]' },
}

function fileInput(file: string, data: Uint8Array, skip = 0, isElement = false): RequestInput {
  const content = { kind: 'bytes', data, source: { file, skip, isElement, isMade: false } } as const
  return { name: 'x', datatype: isElement ? 'BYTES' : 'UINT8', shape: [1], content }
}

/** Runs lines in a shell, and reads what it gives to curl: its arguments, and what stands on its input. */
function runShell(lines: string, cwd: string) {
  const curl = 'curl() { for one; do printf "%s\\0" "$one"; done >args; cat >body; }'
  const script = join(mkdtempSync(join(tmpdir(), 'tutti-script-')), 'lines.sh')
  writeFileSync(script, `${curl}\n${lines}`)
  execFileSync('sh', [script], { cwd, input: '' })
  const read = (file: string) => execFileSync('cat', [file], { cwd })
  return { args: read('args').toString().split('\0').slice(0, -1), body: read('body') }
}

const folder = mkdtempSync(join(tmpdir(), 'tutti-snippets-'))

await t.test('a request of texts and numbers is one line of JSON', async (t) => {
  const { args } = runShell(curlLines({ ...SOURCE, inputs: [JSON_INPUT] }), folder)
  t.same(args, ['http://localhost:8000/v2/models/m/infer', '-d', inferJson([JSON_INPUT], false)])
})

await t.test('JSON that is no argument of a program goes through a pipe', async (t) => {
  const content = { kind: 'json', text: `["${"ü'%s".repeat(50_000)}"]` } as const
  const inputs = [{ ...JSON_INPUT, content }]
  const lines = curlLines({ ...SOURCE, inputs })
  const { args, body } = runShell(lines, folder)
  t.same(args, ['http://localhost:8000/v2/models/m/infer', '--data-binary', '@-'])
  t.equal(body.toString(), inferJson(inputs, false))
})

await t.test('files of one name are found', (t) => {
  const [a, b] = [fileInput('x.npy', new Uint8Array(4)), fileInput('y.npy', new Uint8Array(4))]
  t.equal(sharedFile([a, JSON_INPUT, b, JSON_INPUT]), undefined)
  t.equal(sharedFile([a, b, a]), 'x.npy')
  t.end()
})

await t.test(
  'the lines to copy have a token, TLS, a version, and a file for an answer of bytes',
  async (t) => {
    const more = {
      model: 'a/b',
      version: '2',
      isSecure: true,
      hasToken: true,
      isBinaryAnswer: true,
    }
    const { args } = runShell(`TOKEN=abc\n${curlLines({ ...SOURCE, ...more })}`, folder)
    t.same(args.slice(0, 5), [
      'https://localhost:8000/v2/models/a%2Fb/versions/2/infer',
      '-H',
      'authorization: Bearer abc',
      '--output',
      'answer.bin',
    ])
    const python = pythonLines({ ...SOURCE, ...more })
    t.match(python, /import os\n/)
    t.match(python, /"localhost:8000", ssl=True/)
    t.match(
      python,
      /model_version="2", headers=\{"authorization": "Bearer " \+ os.environ\["TOKEN"\]\}/,
    )
  },
)

await t.test('files of any name and content are sent as they are', async () => {
  const someName = fc
    .string({
      unit: fc.constantFrom('-', 'a', "'", '"', '$', '`', '\\', ' ', '%', '\n', 'ü', '(', ';'),
      minLength: 1,
      maxLength: 12,
    })
    .filter((name) => !['.', '..', 'args', 'body'].includes(name))
  fc.assert(
    fc.property(someName, fc.uint8Array({ maxLength: 300 }), fc.nat(20), (name, bytes, skip) => {
      writeFileSync(join(folder, name), bytes)
      const inputs = [
        JSON_INPUT,
        fileInput(name, encodeBytesTensor([bytes]), 0, true),
        fileInput(name, bytes.subarray(skip), skip),
      ]
      const { args, body } = runShell(curlLines({ ...SOURCE, inputs }), folder)
      const json = Buffer.from(inferJson(inputs, false))
      const wanted = Buffer.concat([json, encodeBytesTensor([bytes]), bytes.subarray(skip)])
      return (
        body.equals(wanted) && args.includes(`Inference-Header-Content-Length: ${json.byteLength}`)
      )
    }),
    { numRuns: 30 },
  )
})

await t.test('Python reads the same', async (t) => {
  const bool: RequestInput = {
    name: 'b',
    datatype: 'BOOL',
    shape: [2],
    content: { kind: 'json', text: '[true, false]' },
  }
  const inputs = [
    bool,
    JSON_INPUT,
    fileInput('a', new Uint8Array(4)),
    fileInput('b.npy', new Uint8Array(4), 128),
  ]
  const python = pythonLines({ ...SOURCE, inputs })
  t.match(python, 'np.array([True, False], np.bool_)')
  t.match(python, 'np.array(["true $HOME `id` \'q\'", "a"], np.object_)')
  const escapes: RequestInput = {
    ...JSON_INPUT,
    content: { kind: 'json', text: String.raw`["\/ \ud83d\ude00 \u0001 \n", "null\\", null]` },
  }
  t.match(
    pythonLines({ ...SOURCE, inputs: [escapes] }),
    String.raw`np.array(["/ 😀 \u0001 \n", "null\\", None], np.object_)`,
  )
  t.match(python, 'np.fromfile("a", np.uint8)')
  t.match(python, 'np.load("b.npy")')
  t.match(
    pythonLines({ ...SOURCE, inputs: [fileInput('p.png', new Uint8Array(9), 0, true)] }),
    'open("p.png", "rb")',
  )
  const brain: RequestInput = { ...fileInput('r', new Uint8Array(4)), datatype: 'BF16' }
  t.match(
    pythonLines({ ...SOURCE, inputs: [brain] }),
    'np.fromfile("r", np.uint16).astype(np.uint32) << 16',
  )
})

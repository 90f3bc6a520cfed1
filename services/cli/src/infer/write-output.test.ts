import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runCommand } from '../testing/run-command.ts'

/** Runs `tutti infer`. */
const infer = (argv: readonly string[], o: Parameters<typeof runCommand>[1] = {}) =>
  runCommand(['infer', ...argv], o)

/*
 * These tests show what `tutti infer` makes of answers that are not as the server declared them.
 */

const outputsOf = (out: string) => JSON.parse(out).outputs

interface AnyTensor {
  readonly name: string
  readonly datatype: string
  readonly shape: readonly number[]
}

/** A server over REST whose answers are not held to what it declares. */
async function serveAnyAnswer(
  t: Test,
  o: {
    readonly outputs: readonly AnyTensor[]
    readonly answer: readonly (AnyTensor & { readonly data: Uint8Array })[]
    readonly name?: string
    readonly error?: string
  },
) {
  const seen = { requests: 0 }
  const server = createServer((request, response) => {
    if (request.method === 'GET') {
      response.end(JSON.stringify({ name: 'any', inputs: [], outputs: o.outputs }))
      return
    }
    seen.requests += 1
    if (o.error !== undefined) {
      response.writeHead(400).end(JSON.stringify({ error: o.error }))
      return
    }
    const outputs = o.answer.map(({ data, ...tensor }) => ({
      ...tensor,
      parameters: { binary_data_size: data.byteLength },
    }))
    const json = Buffer.from(JSON.stringify({ model_name: o.name ?? 'any', outputs }))
    response.setHeader('Inference-Header-Content-Length', json.byteLength)
    response.end(Buffer.concat([json, ...o.answer.map(({ data }) => data)]))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return { seen, argv: ['any', `--url=http://127.0.0.1:${port}`] }
}

const TEXTS = { name: 'texts', datatype: 'BYTES', shape: [-1] }
const REAL = { name: 'real', datatype: 'FP32', shape: [2] }
const twoTexts = { ...TEXTS, shape: [2], data: Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0) }
const twoReals = { ...REAL, data: new Uint8Array(Float32Array.of(1, 2).buffer) }

await t.test('an output that the answer lacks is an error', async (t) => {
  const file = join(t.testdir(), 'out.npy')
  const outputs = [TEXTS, REAL]
  const one = await serveAnyAnswer(t, { outputs, answer: [twoTexts] })
  t.match(await infer([...one.argv, `-o=real=${file}`]), {
    code: 1,
    out: /BYTES\[2\]/,
    err: `tutti infer: output 'real' for ${file}: the answer has 'texts', want 'real'\n`,
  })
  const none = await serveAnyAnswer(t, { outputs, answer: [] })
  t.match(await infer([...none.argv, `-o=real=${file}`]), {
    code: 1,
    err: /the answer has no output, want 'real'\n$/,
  })
})

await t.test('a file that no answer can have the form of costs no request', async (t) => {
  const folder = t.testdir()
  const { seen, argv } = await serveAnyAnswer(t, {
    outputs: [TEXTS, REAL, { ...TEXTS, name: 'pairs', shape: [-1, 2] }],
    answer: [],
  })
  const cases: [string, string, number, RegExp][] = [
    ['real', 'x.png', 1, /output 'real' for .*x\.png: it is FP32\[2\], want UINT8/],
    ['real', 'x.jpg', 1, /it is FP32\[2\], want \.png/],
    ['pairs', 'x.txt', 1, /it is BYTES\[-1,2\], want \.json unless/],
  ]
  for (const [name, file, code, err] of cases) {
    t.match(await infer([...argv, `-o=${name}=${join(folder, file)}`]), { code, err, out: '' })
  }
  for (const file of ['-', '']) {
    const err = `tutti infer: --output: got '${file}' for 'real', want a file, or --format json, which prints all elements`
    const failed = await infer([...argv, `-o=real=${file}`])
    t.match(failed, { code: 2, out: '' })
    t.ok(failed.err.startsWith(err), failed.err)
  }
  const twice = [`-o=real=${join(folder, 'x.raw')}`, `-o=texts=${join(folder, 'y/../x.raw')}`]
  t.match(await infer([...argv, ...twice]), {
    code: 2,
    err: /--output: 'real' and 'texts' have one file, want one for each/,
  })
  t.equal(seen.requests, 0)
})

await t.test('what cannot be written is told, and the rest is written', async (t) => {
  const folder = t.testdir()
  const argv = (await serveAnyAnswer(t, { outputs: [TEXTS, REAL], answer: [twoTexts, twoReals] }))
    .argv
  const [text, real] = [join(folder, 'texts.txt'), join(folder, 'real.raw')]
  const asked = [...argv, '--format=json', `-o=texts=${text}`, `-o=real=${real}`]
  const { code, out, err } = await infer(asked)
  t.equal(code, 1)
  const message = `output 'texts' for ${text}: it is BYTES[2], want .json unless it has one element`
  t.match(JSON.parse(err), { error: { message } })
  t.match(outputsOf(out), [
    { name: 'texts', data: ['', ''] },
    { name: 'real', file: real },
  ])
  t.same(await readFile(real), Buffer.from(twoReals.data))
  t.same(await readdir(folder), ['real.raw'])
  const nowhere = join(folder, 'none', 'x.json')
  t.match(await infer([...argv, `-o=texts=${nowhere}`, `-o=real=${real}`]), {
    code: 1,
    err: /output 'texts' cannot be written: ENOENT/,
    out: /-> .*real\.raw\n$/,
  })
})

await t.test('names and errors of a server are no control sequences of the terminal', async (t) => {
  const name = 'a\u001b]0;x\u0007\u009b2J\n'
  const outputs = [{ ...REAL, name }]
  const answering = await serveAnyAnswer(t, { outputs, answer: [{ ...twoReals, name }], name })
  const failing = await serveAnyAnswer(t, { outputs, answer: [], error: name })
  const escaped = String.raw`a\u001b]0;x\u0007\u009b2J`
  const shown = await infer(answering.argv)
  t.equal(shown.out.split(`${escaped}\\u000a`).length, 3, shown.out)
  t.equal(shown.out.split('\n').length, 3, 'a line for the model and one for the output')
  const json = await infer([...answering.argv, '--format=json'])
  t.match(outputsOf(json.out), [{ name }])
  const failed = await infer(failing.argv)
  const [said, reason] = failed.err.split('\nsee https://tutti.dev/docs/errors/#')
  t.equal(said, `tutti infer: ${escaped}\n`)
  t.match(reason, /^[a-z_]+\n$/)
  for (const text of [shown.out, json.out, failed.err]) {
    t.notMatch(text.replaceAll('\n', ''), /\p{Cc}/u)
  }
})

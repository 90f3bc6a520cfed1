import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createTestCertificates } from '@tutti/chassis/testing'
import { decodePicture, encodePicture } from '@tutti/command-line/client'
import t, { type Test } from 'tap'
import { echo, serveEcho } from '../testing/echo-server.ts'
import { runCommand } from '../testing/run-command.ts'

/** Runs `tutti infer`. */
const infer = (argv: readonly string[], o: Parameters<typeof runCommand>[1] = {}) =>
  runCommand(['infer', ...argv], o)

/*
 * Requests of `tutti infer` to real servers over gRPC and REST, whose models give back what they get.
 */

const MODELS = {
  numbers: echo('FP32', [3], 'max_batch_size: 8'),
  longs: echo('INT64', [-1]),
  halves: echo('FP16', [-1]),
  picture: echo('UINT8', [-1, -1, 3]),
  planes: echo('UINT8', [1, -1, -1], 'max_batch_size: 4'),
  texts: echo('STRING', [-1], 'max_batch_size: 8'),
  grid: echo('INT32', [-1, -1]),
  stream: echo('INT32', [1], 'model_transaction_policy { decoupled: true }'),
  failing: echo('INT32', [1], 'parameters { key: "fails" value { string_value: "yes" } }'),
}

/** Serves the models. */
const serve = (t: Test, argv?: readonly string[], folder?: string) =>
  serveEcho(t, MODELS, argv, folder)

const outputsOf = (out: string) => JSON.parse(out).outputs

await t.test(
  'values are sent as the model wants them, and come back, over both protocols',
  async (t) => {
    const { grpc, rest } = await serve(t)
    const folder = join(t.testdirName, 'files')
    await mkdir(folder)
    const file = (name: string): string => join(folder, name)
    await writeFile(file('three.json'), '[1.5, 2, -3]')
    await writeFile(file('two.json'), '[[1,2,3],[4,5,6]]')
    await writeFile(file('raw'), new Uint8Array(Float32Array.of(1, 2, 3, 4, 5, 6).buffer))
    await writeFile(file('text.txt'), 'Grüße\n')
    await writeFile(file('bytes.bin'), Uint8Array.of(0xff, 0, 1))
    const cases: [string, string, object][] = [
      ['numbers', '[1.5, 2, -3]', { shape: [1, 3], data: [[1.5, 2, -3]] }],
      ['numbers', `@${file('three.json')}`, { shape: [1, 3], data: [[1.5, 2, -3]] }],
      ['numbers', `@${file('two.json')}`, { shape: [2, 3] }],
      [
        'numbers',
        `@${file('raw')}`,
        {
          shape: [2, 3],
          data: [
            [1, 2, 3],
            [4, 5, 6],
          ],
        },
      ],
      ['longs', '9007199254740993', { shape: [1], data: ['9007199254740993'] }],
      ['longs', '[]', { shape: [0], data: [] }],
      ['texts', 'hello world', { shape: [1, 1], data: [['hello world']] }],
      ['texts', '["a", "b"]', { shape: [1, 2], data: [['a', 'b']] }],
      ['texts', '[["a"], ["b"]]', { shape: [2, 1] }],
      ['texts', '{"question": 1}', { data: [['{"question": 1}']] }],
      ['texts', `@${file('text.txt')}`, { data: [['Grüße\n']] }],
      ['texts', `@${file('bytes.bin')}`, { data: [[{ base64: '/wAB' }]] }],
      ['grid', '[[1,2],[3,4]]', { shape: [2, 2] }],
    ]
    for (const url of [grpc, rest]) {
      for (const [model, value, want] of cases) {
        const { code, out, err } = await infer([
          model,
          `--url=${url}`,
          `--input=a=b=${value}`,
          '--format=json',
        ])
        t.equal(code, 0, err)
        t.match(outputsOf(out), [{ name: 'out', ...want }], `${model} ${value}`)
      }
    }
    const bytes = new Uint8Array(Int32Array.of(1, 2, 3, 4, 5, 6).buffer)
    const argv = ['grid', `--url=${grpc}`, '-i', 'a=b=@-', '--shape', 'a=b=2,3']
    t.match(await infer(argv, { input: bytes }), {
      code: 0,
      out: /^grid, version 1: [0-9.]+ ms\n {2}out {2}INT32\[2,3\] {2}1, 2, 3, 4, 5, 6\n$/,
    })
  },
)

await t.test('pictures go in and come out', async (t) => {
  const { grpc } = await serve(t)
  const folder = join(t.testdirName, 'files')
  await mkdir(folder)
  const file = (name: string): string => join(folder, name)
  const data = Buffer.from(Array.from({ length: 2 * 3 * 4 }, (_, i) => (i % 4 === 3 ? 255 : i * 7)))
  const picture = { datatype: 'UINT8', shape: [2, 3, 4], data } as const
  await writeFile(file('in.png'), encodePicture(picture) ?? new Uint8Array())
  const url = `--url=${grpc}`
  const input = `--input=a=b=@${file('in.png')}`
  const argv = ['picture', url, input, `--output=out=${file('out.png')}`]
  t.match(await infer(argv), { code: 0, out: /UINT8\[2,3,3\].* -> .*out\.png\n$/ })
  t.same(decodePicture(await readFile(file('out.png')), [-1, -1, 4]).data, new Uint8Array(data))
  t.match(await infer(['planes', url, input]), {
    code: 1,
    err: /input 'a=b' \(in\.png\): the picture has colours, want a grey one/,
  })
  t.match(await infer(['numbers', url, input]), {
    err: /a picture for FP32\[-1,3\]: want UINT8 to decode it, or the values as \.npy/,
  })
  await infer(['picture', url, input, `--output=out=${file('out.npy')}`])
  t.match(await infer(['picture', url, `--input=a=b=@${file('out.npy')}`, '--format=json']), {
    out: /"shape":\[2,3,3\]/,
  })
  const written = await readFile(file('in.png'))
  const text = ['texts', url, input, `--output=out=${file('copy.png')}`]
  t.match(await infer(text), { code: 0 })
  t.same(await readFile(file('copy.png')), written, 'BYTES is the file itself')
})

await t.test('each response of a stream is told and stored', async (t) => {
  const { grpc, rest } = await serve(t)
  const file = join(t.testdirName, 'out.json')
  const { code, out } = await infer(['stream', `--url=${grpc}`, '-i=a=b=5', `-o=out=${file}`])
  t.equal(code, 0)
  t.equal(out.match(/^stream, version 1/gm)?.length, 3)
  for (const name of [file, join(t.testdirName, 'out.2.json'), join(t.testdirName, 'out.3.json')]) {
    t.equal(await readFile(name, 'utf8'), '[5]\n')
  }
  const lines = (await infer(['stream', `--url=${grpc}`, '-i=a=b=5', '--format=json'])).out
  t.equal(
    lines
      .trim()
      .split('\n')
      .map((line) => outputsOf(line)).length,
    3,
  )
  t.match(await infer(['stream', `--url=${rest}`, '-i=a=b=5']), { code: 1, err: /decoupled/ })
})

await t.test('errors name the input, what came and what was wanted', async (t) => {
  const { grpc, rest } = await serve(t)
  const folder = join(t.testdirName, 'files')
  await mkdir(folder)
  await writeFile(join(folder, 'x.npy'), 'nothing')
  const cases: [readonly string[], number, RegExp][] = [
    [['numbers', '-i=a=b=[1,2]'], 1, /input 'a=b': got shape \[2\], want \[-1,3\]$/m],
    [['numbers', '-i=a=b=[[1,2],[3]]'], 1, /its arrays are not of one length/],
    [['numbers', '-i=a=b=cat'], 1, /input 'a=b': got "cat", want JSON: a number, or an array/],
    [['numbers', '-i=a=b=["x","y","z"]'], 1, /input 'a=b': Unable to parse 'data'/],
    [['longs', '-i=a=b=1.5'], 1, /input 'a=b'/],
    [['halves', '-i=a=b=[1]'], 1, /input 'a=b': .*FP16/],
    [['stream', '-i=a=b=@/dev/zero'], 2, /--input a=b=@\/dev\/zero: .* more than \d{7} bytes/],
    [['stream', '-i=a=b=@/'], 2, /--input a=b=@\/: it cannot be read: it is a folder, want a file/],
    [['picture', '-i=a=b=[1,2,3]'], 1, /got shape \[3\], want \[-1,-1,3\], or --shape a=b=/],
    [['grid', '-i=a=b=[1,2]', '--shape=a=b=x'], 2, /--shape: 'a=b' got 'x', want .* 1,1 /],
    [['grid', `-i=a=b=@${join(folder, 'x.npy')}`], 1, /x\.npy\): it does not begin as a file/],
    [['grid', `-i=a=b=@${join(folder, 'none')}`], 2, /--input .*none: it cannot be read: ENOENT/],
    [['numbers', '-i=c=1'], 2, /--input: the model has no 'c'; there is a=b/],
    [['numbers', '-i=a=b'], 2, /--input: got 'a=b' without a value, want a=b=VALUE/],
    [
      ['numbers', '-i=a=b=[1,2,3]', '-o=aut=x'],
      2,
      /--output: the model has no 'aut'; did you mean 'out'/,
    ],
    [['numbers', '-i=a=b=1', '-i=a=b=2'], 2, /one input came twice/],
    [['numbers', '-i=a=b=[1,2,3]', '-o=out=x', '-o=out=y'], 2, /--output: one output came twice/],
    [['numbers', '--shape=a=b=1,3'], 2, /--shape: 'a=b' has no value, want --input a=b=VALUE too/],
    [
      ['nambers'],
      1,
      /:\/\/127\.0\.0\.1:\d+: .*unknown model: 'nambers'.*; did you mean 'numbers'\?$/m,
    ],
    [['elsewhere'], 1, /unknown model: 'elsewhere'.*; there is \w+, \w+, \w+, \w+, \w+, \.\.\.$/m],
    [['numbers', '--model-version=x'], 2, /--model-version: "x", want a whole number from 1/],
    [[''], 2, /got an empty name, want that of a model/],
    [['numbers', '--model-version=7'], 1, /'numbers' version 7 is not found$/m],
    [['numbers'], 1, /; want --input a=b=VALUE or a=b=@FILE with FP32\[-1,3\]$/m],
    [['failing', '-i=a=b=1'], 1, /it does not like that/],
    [[], 2, /got 0 model names, want one/],
    [['numbers', '--tls-key=x'], 2, /it cannot be read/],
  ]
  for (const url of [grpc, rest]) {
    for (const [argv, code, err] of cases) {
      t.match(await infer([...argv, `--url=${url}`]), { code, err, out: '' }, argv.join(' '))
    }
  }
  for (const url of ['ftp://x', 'localhost:8001', 'grpc://', '']) {
    t.match(await infer(['numbers', `--url=${url}`]), {
      code: 2,
      err: /--url: got '.*', want grpc:/,
    })
  }
  for (const url of ['http://127.0.0.1:1', 'grpc://127.0.0.1:1']) {
    t.match(await infer(['numbers', `--url=${url}`]), {
      code: 1,
      err: /ECONNREFUSED 127\.0\.0\.1:1/,
    })
  }
})

await t.test('input that may have no end is read up to a bound', async (t) => {
  const { grpc } = await serve(t)
  const pipe = join(t.testdirName, 'pipe')
  await promisify(execFile)('mkfifo', [pipe])
  const argv = ['stream', `--url=${grpc}`, '--format=json']
  const [piped] = await Promise.all([
    infer([...argv, `-i=a=b=@${pipe}`]),
    writeFile(pipe, Uint8Array.of(7, 0, 0, 0)),
  ])
  t.same(outputsOf(piped.out.split('\n')[0] ?? '')[0].data, [7], piped.err)
  t.match(await infer([...argv, '-i=a=b=@-'], { input: Buffer.alloc(2 ** 21) }), {
    code: 2,
    err: /--input a=b=@-: it cannot be read: got more than 1048704 bytes/,
  })
})

await t.test('servers with TLS and tokens are reached', async (t) => {
  const folder = join(t.testdir({ files: {} }), 'files')
  const certificates = await createTestCertificates(folder)
  const token = 'a-token'
  const access = join(folder, 'access.yaml')
  const digest = createHash('sha256').update(token).digest('hex')
  const identity = { name: 'a', tokenSha256: [digest], models: ['grid'] }
  await writeFile(access, JSON.stringify({ identities: [identity] }))
  await writeFile(join(folder, 'token'), `${token}\n`)
  const served = ['grpc', 'http'].flatMap((listener) => [
    `--${listener}-use-ssl`,
    `--${listener}-server-cert=${certificates.certFile}`,
    `--${listener}-server-key=${certificates.keyFile}`,
  ])
  const { grpc, rest } = await serve(t, [...served, `--access-file=${access}`], folder)
  for (const url of [grpc.replace('grpc:', 'grpcs:'), rest.replace('http:', 'https:')]) {
    const argv = ['grid', `--url=${url}`, '-i=a=b=[[1]]']
    const trusted = [...argv, `--tls-ca=${certificates.caFile}`]
    t.match(await infer([...trusted, `--token-file=${join(folder, 'token')}`]), { code: 0 })
    t.match(await infer(trusted, { env: { TUTTI_TOKEN: token } }), { code: 0, out: /INT32\[1,1\]/ })
    t.match(await infer(trusted), { code: 1, err: /token|identity/ })
    const { code, err } = await infer(trusted, { env: { TUTTI_TOKEN: 'secret\nsecret' } })
    t.same([code, err.includes('secret')], [2, false], 'what is no token is not shown')
    t.match(err, /TUTTI_TOKEN: got .*, want one token/)
    t.match(await infer(argv), { code: 1, err: /certificate/ }, 'an authority that is not known')
  }
})

await t.test('what a model answers is no control sequence of the terminal', async (t) => {
  const { grpc } = await serve(t)
  const { out } = await infer(['texts', `--url=${grpc}`, '-i=a=b=\u001b[31mred\u202e\u0085'])
  t.match(out, String.raw`"\u001b[31mred\u202e\u0085"`)
  t.notOk(['\u001b', '\u202e', '\u0085'].some((control) => out.includes(control)))
})

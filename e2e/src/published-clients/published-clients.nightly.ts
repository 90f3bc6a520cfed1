// needs: nats, python, perf-analyzer
import { cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { SKIP, startHarness } from '../processes/harness.ts'
import { untilReady } from '../processes/seen.ts'
import { ROOT, runProgram, serve, type Target } from '../serving.ts'
import { BASIC, tempFolder } from '../temp-repository.ts'
import { PYTHON, PYTHON_FLAGS, runTritonChecks } from '../triton-client.ts'
import { CURL_LINES } from './curl-lines.ts'
import { PERF_MODES } from './perf-modes.ts'
import { openPublishedClient } from './published-grpc.ts'

t.setTimeout(900_000)

const { TUTTI_PERF_ANALYZER: analyzer, TUTTI_PERF_ANALYZER_MISSING: reason } = process.env
const skip = PYTHON === undefined ? 'TUTTI_TEST_PYTHON is not set' : SKIP
const withoutAnalyzer =
  analyzer === undefined ? (reason ?? 'TUTTI_PERF_ANALYZER is not set') : false

const SEQUENCES = `${ROOT}model_repository/.variants/fixtures/sequences`
/** Ensembles last: the others are what they need. */
const OF_BASIC = ['add_one_batch', 'add_sub', 'identity_string', 'ens_chain', 'ens_nested']
const OF_SEQUENCES = ['seq_sum', 'seq_oldest']
const REPEATED = `backend: "repeat" model_transaction_policy { decoupled: true }
  input { name: "IN" data_type: TYPE_INT32 dims: -1 }
  input { name: "DELAY" data_type: TYPE_UINT32 dims: -1 }
  input { name: "WAIT" data_type: TYPE_UINT32 dims: 1 }
  output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
  output { name: "IDX" data_type: TYPE_UINT32 dims: 1 }`

interface Way {
  readonly target: Target
  readonly isRouter: boolean
}

async function writeRepository(t: Test): Promise<string> {
  const folder = await tempFolder(t)
  for (const [from, models] of [
    [BASIC, OF_BASIC],
    [SEQUENCES, OF_SEQUENCES],
  ] as const) {
    for (const model of models) {
      await cp(join(from, model), join(folder, model), { recursive: true })
    }
  }
  await mkdir(join(folder, 'repeated', '1'), { recursive: true })
  await writeFile(join(folder, 'repeated', 'config.pbtxt'), REPEATED)
  return folder
}

async function inOneProcess(t: Test): Promise<Way> {
  const folder = await writeRepository(t)
  const explicit = ['--model-control-mode=explicit', '--load-model=*']
  const trace = `--trace-config=triton,file=${join(await tempFolder(t), 'trace.json')}`
  const flags = [...PYTHON_FLAGS, ...explicit, trace]
  return { target: await serve(t, { repositories: [folder], flags }), isRouter: false }
}

async function overNats(t: Test): Promise<Way> {
  const repositories = [await writeRepository(t)]
  const harness = await startHarness(t)
  const [target] = await Promise.all([
    harness.router({ repositories }),
    harness.step({ repositories, flags: PYTHON_FLAGS }),
  ])
  await untilReady([target], [...OF_BASIC, ...OF_SEQUENCES, 'repeated'])
  return { target, isRouter: true }
}

async function runAnalyzer(t: Test, { target, isRouter }: Way): Promise<void> {
  const folder = await tempFolder(t)
  const data = join(folder, 'inputs.json')
  await writeFile(data, JSON.stringify({ data: [3, 4, 5, 6].map((value) => ({ INPUT: [value] })) }))
  const places = {
    HTTP: `http -u 127.0.0.1:${target.httpPort}`,
    GRPC: `grpc -u 127.0.0.1:${target.grpcPort}`,
    METRICS: `127.0.0.1:${target.metricsPort}/metrics`,
    DATA: data,
  }
  for (const { name, args, refusedByRouters } of PERF_MODES) {
    const words = args.replace(/\b(HTTP|GRPC|METRICS|DATA)\b/g, (word) => Reflect.get(places, word))
    const all = [...words.split(' '), '--request-count', '40']
    const { code, out, err } = await runProgram(analyzer ?? '', all, { env: process.env })
    if (isRouter && refusedByRouters !== undefined) {
      t.not(code, 0, name)
      t.match(out + err, refusedByRouters, name)
    } else {
      t.equal(code, 0, `${name}\n${out}\n${err}`)
      t.match(out, /Throughput: [1-9]/, name)
    }
  }
}

async function runCurl(t: Test, { target, isRouter }: Way): Promise<void> {
  for (const { line, status, answer = /^/ } of CURL_LINES) {
    const words = line.map((word) =>
      word
        .replace('localhost:8000', `127.0.0.1:${target.httpPort}`)
        .replace('localhost:8002', `127.0.0.1:${target.metricsPort}`),
    )
    const { out } = await runProgram('curl', ['-sS', '-w', '\n%{http_code}', ...words])
    const [, body = '', code] = /^([^]*)\n(\d+)$/.exec(out) ?? []
    t.equal(Number(code), status[isRouter ? 1 : 0], `${line.join(' ')}\n${out}`)
    t.match(body, answer, line.join(' '))
  }
}

async function callFromJavaScript(t: Test, { target, isRouter }: Way): Promise<void> {
  const client = openPublishedClient(t, target.grpcPort)
  t.match(await client.call('ServerLive', {}), { live: true })
  t.match(await client.call('ModelMetadata', { name: 'add_one_batch' }), {
    inputs: [{ name: 'X', datatype: 'FP32', shape: ['-1', '16'] }],
  })
  const input = { name: 'X', datatype: 'FP32', shape: [1, 16] }
  const contents = { fp32_contents: Array.from({ length: 16 }, (_, i) => i) }
  const inputs = [{ ...input, contents }]
  const { raw_output_contents: raw } = await client.call('ModelInfer', {
    model_name: 'ens_chain',
    inputs,
  })
  t.equal((raw as Buffer[])[0]?.readFloatLE(4), 3)
  const ids = ['a', 'b', 'c']
  const responses = await client.stream(
    ids.map((id) => ({ id, model_name: 'add_one_batch', inputs })),
  )
  t.match(
    responses,
    ids.map((id) => ({ infer_response: { id } })),
  )
  const load = client.call('RepositoryModelLoad', { model_name: 'add_one_batch' })
  if (isRouter) await t.rejects(load, { code: 14 })
  else await load
  await t.rejects(client.call('ModelConfig', { name: 'absent' }), { code: 5 })
}

const WAYS = { 'in one process': inOneProcess, 'over NATS': overNats }

for (const [name, start] of Object.entries(WAYS)) {
  await t.test(`published clients ${name}`, { skip }, async (t) => {
    const way = await start(t)
    await t.test("NVIDIA's four Python clients", (t) =>
      runTritonChecks(t, 'four_clients.py', way.target, [
        `--control=${way.isRouter ? 'no' : 'yes'}`,
      ]),
    )
    await t.test('perf_analyzer in its modes', { skip: withoutAnalyzer }, (t) =>
      runAnalyzer(t, way),
    )
    await t.test('a JavaScript client made from the published protos', (t) =>
      callFromJavaScript(t, way),
    )
    await t.test('curl, by the lines of the documentation', (t) => runCurl(t, way))
  })
}

import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createEngines, type Engine, type EngineRequest, type Engines } from '@tutti/backends'
import { buildOnnx, pretendCuda, pretendHandle, withoutCompiler } from '@tutti/backends/testing'
import {
  createHealth,
  createLogger,
  loadTracingSettings,
  parseFlags,
  type Running,
  silentLogger,
} from '@tutti/chassis'
import { type ModelConfig, parseModelConfig } from '@tutti/model-config'
import {
  DATATYPES,
  type Datatype,
  elementCount,
  encodeBytesTensor,
  fromConfigDatatype,
} from '@tutti/tensor'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { startServe } from './serve.ts'
import { checkServeFlags, settleDeprecated } from './serve-command.ts'
import { SERVE_FLAGS } from './serve-flags.ts'

t.setTimeout(120_000)

/** A line or configuration that others published; if a test expects a refusal, its message or reason has the text `refused`. */
interface Published {
  readonly source: string
  readonly refused?: string
}

interface PublishedLine extends Published {
  readonly flags: string
  /** The line is only parsed: what it needs is not on the machine of a test. */
  readonly isParsedOnly?: true
}

interface PublishedConfig extends Published {
  readonly name: string
  readonly config: string
}

interface Started {
  readonly port: number
  readonly written: readonly {
    readonly httpPort?: number
    readonly flag?: string
    readonly value?: string
  }[]
}

const FILE = new URL('testing/start-lines.yaml', import.meta.url)
const { lines: LINES, configs: CONFIGS } = parse(await readFile(FILE, 'utf8')) as {
  lines: readonly PublishedLine[]
  configs: readonly PublishedConfig[]
}
const PORTS = ['http', 'grpc', 'metrics'].flatMap((name) => [
  `--${name}-port=0`,
  `--${name}-address=127.0.0.1`,
])
const ADD_ONE = join(
  import.meta.dirname,
  '../../../../model_repository/.variants/fixtures/basic/add_one_batch/1/model.onnx',
)

/** The words of a line as a shell gives them, with free ports of the loopback and folders of the test. */
function toArguments(flags: string, folder: string): readonly string[] {
  const words = flags.replace(/(?<=[ =])\/(models|tmp)/g, `${folder}/$1`)
  return [...words.split(' '), ...PORTS]
}

/** A repository with `add`, and a copy of it for each model that the line loads. */
async function writeModels(folder: string, flags: string): Promise<void> {
  const loaded = [...flags.matchAll(/--load-model[= ](\S+)/g)].map(([, name = '']) => name)
  const folders = [...flags.matchAll(/--model-repository[= ]\/(models\S*)/g)]
  const [repository = 'models', ...others] = folders.map(([, path = '']) => path)
  for (const other of others) await mkdir(join(folder, other), { recursive: true })
  for (const name of ['add', ...loaded.filter((one) => one !== '*')]) {
    await writeModel(join(folder, repository, name), ADD_CONFIG)
  }
}

async function writeModel(folder: string, config: string): Promise<void> {
  await mkdir(join(folder, '1'), { recursive: true })
  await writeFile(join(folder, '1/model.onnx'), await readFile(ADD_ONE))
  await writeFile(join(folder, 'config.pbtxt'), config)
}

const ADD_CONFIG = `backend: "onnxruntime" max_batch_size: 8
  input { name: "X" data_type: TYPE_FP32 dims: 16 } output { name: "Y" data_type: TYPE_FP32 dims: 16 }`

/** Starts as the command does, and gives the port of HTTP and the lines of the log. */
async function start(t: Test, argv: readonly string[], engines?: Engines): Promise<Started> {
  const { values } = parseFlags(SERVE_FLAGS, argv)
  checkServeFlags(values)
  const written: string[] = []
  const destination = { write: (line: string) => written.push(line) }
  const log = createLogger({ level: 'info', name: 'test', destination })
  const running: Running = await startServe({
    flags: settleDeprecated(values),
    settings: loadTracingSettings({}),
    log,
    health: createHealth(),
    ...(engines && { engines }),
  })
  t.teardown(() => running.close())
  const lines = written.map((line): Started['written'][number] => JSON.parse(line))
  return {
    port: Number(lines.find(({ httpPort }) => httpPort !== undefined)?.httpPort),
    written: lines,
  }
}

async function post(port: number, path: string, body: object): Promise<readonly [number, string]> {
  const answer = await fetch(`http://127.0.0.1:${port}/v2/${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
  })
  return [answer.status, await answer.text()]
}

await t.test('settings of backends that have no effect are told', async (t) => {
  const folder = t.testdir({})
  await writeModels(folder, '')
  const settings = ['tensorflow,version=2', 'python,shm-region-prefix-name=p', 'min-compute=5']
  const flags = settings.map((setting) => `--backend-config=${setting}`)
  const { written } = await start(t, [`--model-repository=${folder}/models`, ...flags, ...PORTS])
  const told = written.filter(({ flag }) => flag === '--backend-config')
  t.same(
    told.map(({ value }) => value),
    settings,
  )
  t.match(told[0], { message: 'flag has no effect', description: /^No effect: ./ })
})

await t.test('published start lines start and serve, or say what is missing', async (t) => {
  t.ok(LINES.length >= 40, `${LINES.length} lines`)
  const root = t.testdir({})
  for (const [place, { flags, refused, isParsedOnly }] of LINES.entries()) {
    await t.test(flags, async (t) => {
      const folder = join(root, String(place))
      await mkdir(join(folder, 'tmp'), { recursive: true })
      await writeModels(folder, flags)
      const argv = toArguments(flags, folder)
      if (refused !== undefined) {
        await t.rejects(start(t, argv), { message: new RegExp(refused) })
        return
      }
      if (isParsedOnly) {
        t.doesNotThrow(() => parseFlags(SERVE_FLAGS, argv))
        return
      }
      const { port } = await start(t, argv)
      const health = await fetch(`http://127.0.0.1:${port}/v2/health/ready`)
      t.equal(health.status, 200)
      const isLoaded = !/mode[= ]explicit/.test(flags) || flags.includes('--load-model')
      const [, name] = /--load-model[= ]([^*\s]+)/.exec(flags) ?? [undefined, 'add']
      if (!isLoaded) t.equal((await post(port, 'repository/models/add/load', {}))[0], 200)
      const input = { name: 'X', datatype: 'FP32', shape: [1, 16], data: Array(16).fill(1) }
      const [status, text] = await post(port, `models/${name}/infer`, { inputs: [input] })
      t.equal(status, 200, text)
    })
  }
})

/** Checks that a request gets what only a server with the extension answers; by name, in the order of tritonserver 2.51. */
const EXTENSIONS: Readonly<Record<string, (port: number) => Promise<boolean>>> = {
  classification: (port) =>
    infers(port, { outputs: [{ name: 'Y', parameters: { classification: 1 } }] }, /BYTES/),
  sequence: async (port) => {
    const parameters = { sequence_id: 7, sequence_start: true, sequence_end: true }
    const isRefused = !(await infers(port, {}, /"Y"/, 'sequence'))
    return isRefused && (await infers(port, { parameters }, /"Y"/, 'sequence'))
  },
  model_repository: (port) => posts(port, 'repository/index', {}, /"add".*READY/),
  'model_repository(unload_dependents)': async (port) => {
    const path = 'repository/models/over'
    if (!(await posts(port, `${path}/load`, {}, /^$/))) return false
    await post(port, `${path}/unload`, { parameters: { unload_dependents: true } })
    return posts(port, 'repository/index', {}, /"below","version":"1","state":"UN/)
  },
  schedule_policy: async (port) =>
    (await infers(port, { parameters: { priority: 1, timeout: 1_000_000 } }, /"Y"/)) &&
    !(await infers(port, { parameters: { priority: 'first' } }, /"Y"/)),
  model_configuration: (port) => gets(port, 'models/add/config', /"max_batch_size":8/),
  system_shared_memory: (port) => takesRegions(port, 'system', { key: '/nosuch', offset: 0 }),
  cuda_shared_memory: (port) =>
    takesRegions(port, 'cuda', {
      raw_handle: { b64: Buffer.alloc(64).toString('base64') },
      device_id: 0,
    }),
  binary_tensor_data: (port) =>
    infers(
      port,
      { outputs: [{ name: 'Y', parameters: { binary_data: true } }] },
      /"binary_data_size":64/,
    ),
  parameters: async (port) =>
    (await infers(port, { parameters: { own: 1 } }, /"Y"/)) &&
    !(await infers(port, { parameters: { triton_own: 1 } }, /"Y"/)),
  statistics: (port) => gets(port, 'models/add/stats', /"inference_count":[1-9]/),
  trace: (port) => gets(port, 'trace/setting', /"trace_level"/),
  logging: (port) => gets(port, 'logging', /"log_info"/),
}

async function gets(port: number, path: string, want: RegExp): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${port}/v2/${path}`)
  return answer.ok && want.test(await answer.text())
}

async function posts(port: number, path: string, body: object, want: RegExp): Promise<boolean> {
  const [status, text] = await post(port, path, body)
  return status === 200 && want.test(text)
}

/** A region that is not there is refused for that, where regions are taken. */
async function takesRegions(port: number, kind: string, region: object): Promise<boolean> {
  const path = `${kind}sharedmemory/region/r/register`
  const [, text] = await post(port, path, { ...region, byte_size: 1 })
  const isAsked = /Unable to open|failed to register/.test(text)
  return isAsked && (await gets(port, `${kind}sharedmemory/status`, /^\[\]$/))
}

async function infers(port: number, more: object, want: RegExp, model = 'add'): Promise<boolean> {
  const input = { name: 'X', datatype: 'FP32', shape: [1, 16], data: Array(16).fill(1) }
  return await posts(port, `models/${model}/infer`, { inputs: [input], ...more }, want)
}

await t.test('each extension that is listed works, and each that works is listed', async (t) => {
  const folder = t.testdir({})
  const io = ADD_CONFIG.slice(ADD_CONFIG.indexOf('max_batch_size'))
  await writeModels(folder, '--load-model=below')
  await writeModel(join(folder, 'models/sequence'), `${ADD_CONFIG} sequence_batching {}`)
  const step = `step { model_name: "below" model_version: -1
    input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } }`
  const over = `platform: "ensemble" ${io} ensemble_scheduling { ${step} }`
  await writeModel(join(folder, 'models/over'), over)
  const common = [`--model-repository=${folder}/models`, ...PORTS]
  const explicit = ['--model-control-mode=explicit', '--load-model=add', '--load-model=sequence']
  const cases = [
    [[...common, ...explicit], Object.keys(EXTENSIONS)],
    [
      [...common, ...explicit, '--allow-client-shm=false', '--trace-config=mode=opentelemetry'],
      Object.keys(EXTENSIONS).filter((name) => !/shared_memory|trace/.test(name)),
    ],
  ] as const
  for (const [argv, want] of cases) {
    const { port } = await start(t, argv)
    const metadata = await fetch(`http://127.0.0.1:${port}/v2`)
    const { extensions } = (await metadata.json()) as { extensions: readonly string[] }
    t.same(extensions, want)
    for (const [name, works] of Object.entries(EXTENSIONS)) {
      t.equal(await works(port), extensions.includes(name), name)
    }
  }
})

/** Every model of it answers zeros, or empty text; its code is not what is tested. */
function zeroEngine(backend: string): Engine {
  return {
    backend,
    inspect: () => Promise.reject(new Error('everything is declared')),
    load: async ({ config }) => ({
      execute: async (batch) => {
        for (const request of batch) answerZeros(config, request)
        return { computeInputNs: 1, computeInferNs: 1, computeOutputNs: 1 }
      },
      close: async () => {},
    }),
  }
}

function answerZeros(config: ModelConfig, { request, sink }: EngineRequest): void {
  const rows = config.max_batch_size > 0 ? [request.batchSize] : []
  const outputs = config.output.map(({ name, data_type: type, dims, reshape }) => {
    const shape = [...rows, ...(reshape?.shape ?? dims).map((extent) => Math.max(extent, 1))]
    return { name, ...zeros(type, shape) }
  })
  sink.send({ index: 0, final: true, outputs, parameters: new Map() })
}

function zeros(type: string, shape: readonly number[]) {
  const datatype = fromConfigDatatype(type) ?? 'FP32'
  const count = elementCount(shape)
  const { itemSize } = DATATYPES[datatype]
  const data =
    itemSize === null
      ? encodeBytesTensor(Array.from({ length: count }, () => new Uint8Array()))
      : new Uint8Array(count * itemSize)
  return { datatype, shape, data, count }
}

/** A file that fits the configuration; its outputs are constants. */
function onnxOf(config: ModelConfig): Uint8Array {
  const rows = config.max_batch_size > 0 ? (['N'] as const) : []
  const value = ({
    name,
    data_type: type,
    dims,
    reshape,
  }: Pick<ModelConfig['output'][number], 'name' | 'data_type' | 'dims' | 'reshape'>) => ({
    name,
    type: zeros(type, []).datatype,
    dims: [...rows, ...(reshape?.shape ?? dims)],
  })
  const controls = (config.sequence_batching?.control_input ?? []).map(({ name }) => ({
    name,
    type: 'INT32' as const,
    dims: [...rows, 1],
  }))
  return buildOnnx({
    inputs: [...config.input.map(value), ...controls],
    outputs: config.output.map(value),
    operators: config.output.map(({ name }) => ({
      op: 'Identity',
      inputs: [`zeros of ${name}`],
      outputs: [name],
    })),
    initializers: config.output.map(({ name, data_type: type, dims, reshape }) => {
      const shape = [...rows.map(() => 1), ...(reshape?.shape ?? dims)]
      const { datatype, data } = zeros(type, shape)
      return { name: `zeros of ${name}`, type: datatype, dims: shape, data }
    }),
  })
}

async function writeConfigs(t: Test): Promise<string> {
  const folder = t.testdir({})
  for (const { name, config: text } of CONFIGS) {
    const version = join(folder, name, '1')
    await mkdir(version, { recursive: true })
    await writeFile(join(folder, name, 'config.pbtxt'), text)
    const config = parseModelConfig(text, 'config.pbtxt')
    if (/onnx/.test(config.backend + config.platform)) {
      await writeFile(join(version, 'model.onnx'), onnxOf(config))
    }
  }
  return folder
}

/** A request of zeros; a sequence is one request long. */
function requestOf(text: string): object {
  const config = parseModelConfig(text, 'config.pbtxt')
  const rows = config.max_batch_size > 0 ? [1] : []
  const inputs = config.input.map(({ name, data_type: type, dims }) => {
    const shape = [...rows, ...dims.map((extent) => Math.max(extent, 1))]
    const { datatype, count } = zeros(type, shape)
    const element = new Map<Datatype, unknown>([
      ['BYTES', ''],
      ['BOOL', false],
    ]).get(datatype)
    return { name, datatype, shape, data: Array(count).fill(element ?? 0) }
  })
  if (config.sequence_batching === undefined) return { inputs }
  return { inputs, parameters: { sequence_id: 7, sequence_start: true, sequence_end: true } }
}

await t.test('published configurations are served, or say what is missing', async (t) => {
  const real = createEngines({ log: silentLogger })
  const made = new Map(['python', 'pytorch'].map((name) => [name, zeroEngine(name)]))
  const engines: Engines = {
    get: (name) => made.get(name) ?? real.get(name),
    keys: () => real.keys(),
  }
  const flags = `--model-repository=${await writeConfigs(t)} --strict-readiness=false`
  const { port } = await start(t, [...flags.split(' '), ...PORTS], engines)
  const [, index] = await post(port, 'repository/index', {})
  const entries = JSON.parse(index) as { name: string; state?: string; reason?: string }[]
  for (const { name, config, refused } of CONFIGS) {
    await t.test(name, async (t) => {
      const entry = entries.find((one) => one.name === name)
      if (refused !== undefined) {
        t.match(entry?.reason, new RegExp(refused))
        return
      }
      t.match(entry, { state: 'READY' })
      const isDecoupled =
        parseModelConfig(config, 'config.pbtxt').model_transaction_policy?.decoupled === true
      if (isDecoupled) return
      const [status, text] = await post(port, `models/${name}/infer`, requestOf(config))
      t.equal(status, 200, text)
    })
  }
})

function placeAt(offset: number): object {
  const [shared_memory_region, shared_memory_byte_size] = ['g', 64]
  return { shared_memory_region, shared_memory_offset: offset, shared_memory_byte_size }
}

// Last: what looks for the driver in this process finds the pretended one from here on.
await t.test('clients share the memory of a GPU', { skip: withoutCompiler }, async (t) => {
  const folder = t.testdir({})
  await writeModels(folder, '')
  const pretended = await pretendCuda(t)
  const { port } = await start(t, [`--model-repository=${folder}/models`, ...PORTS])
  const region = 'cudasharedmemory/region/g'
  const raw_handle = { b64: pretendHandle(1).toString('base64') }
  const registered = { raw_handle, device_id: 1, byte_size: 1024 }
  t.same(await post(port, `${region}/register`, registered), [200, ''])
  const input = { name: 'X', datatype: 'FP32', shape: [1, 16], parameters: placeAt(0) }
  const outputs = [{ name: 'Y', parameters: placeAt(256) }]
  const [status, text] = await post(port, 'models/add/infer', { inputs: [input], outputs })
  t.equal(status, 200, text)
  const added = new Float32Array(pretended.look(1).buffer, 0, 81)
  t.same([added[0], ...added.subarray(63)], [0, 0, ...Array(16).fill(1), 0])
  t.same(await post(port, `${region}/unregister`, {}), [200, ''])
  t.equal(pretended.opened(), 0)
})

// needs: nats
import { readFileSync } from 'node:fs'
import type { Engine, EngineRequest, ModelHost } from '@tutti/backends'
import {
  createHealth,
  createLogger,
  loadTracingSettings,
  parseFlags,
  type Running,
} from '@tutti/chassis'
import { startNatsServer, until, withoutNatsServer } from '@tutti/chassis/testing'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { ROUTER_FLAGS, startRouter } from '@tutti/router'
import { STEP_FLAGS, startStep } from '@tutti/step'
import { type RecordedResponse, RecordedResponses } from '@tutti/tensor/testing'
import t, { type Test } from 'tap'
import { startServe } from './serve.ts'
import { SERVE_FLAGS } from './serve-flags.ts'

interface TraceEvent {
  readonly id: number
  readonly model_name?: string
  readonly parent_id?: number
}

interface Named {
  readonly name: string
  readonly state?: string
}

/** The request that the engine of these tests executes. */
type StepRequest = NonNullable<Parameters<ModelHost['infer']>[2]['caller']>

const LOOPBACK = ['grpc', 'http', 'metrics'].flatMap((server) => [
  `--${server}-address=127.0.0.1`,
  `--${server}-port=0`,
])
const TIMES = { computeInputNs: 1, computeInferNs: 1, computeOutputNs: 1 }
const io =
  'input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }'
const model = (count = 1): string =>
  `backend: "scripted" ${io} instance_group { count: ${count} kind: KIND_CPU }`
const ensemble = `platform: "ensemble" ${io} ensemble_scheduling {
  step { model_name: "add" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "t" } }
  step { model_name: "add" model_version: -1 input_map { key: "X" value: "t" } output_map { key: "Y" value: "Y" } } }`

/**
 * `add` adds one, or what its configuration says. `call` calls the model that its parameter names, which gets its parameters; with `ready` it says whether that
 * model is ready, and with `traced` it gives its trace to the call. `held` waits until it is cancelled.
 */
function testEngine() {
  const state = { held: 0, cancelled: 0 }
  const run = async (
    { name, parameters: given }: ModelConfig,
    request: StepRequest,
    host: ModelHost,
    signal: CancelSignal,
  ) => {
    const { parameters } = request.context
    const text = (key: string): string => String(parameters.get(key)?.value ?? '')
    if (name === 'add')
      return { outputs: [plus(request, Number(given['plus']?.string_value ?? 1))] }
    if (name === 'held') {
      state.held += 1
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      state.cancelled += 1
      return { outputs: [] }
    }
    if (text('ready') !== '') {
      const isReady = await host.isReady(text('ready'), '', { signal })
      return { outputs: [output(isReady ? 1 : 0)] }
    }
    if (text('load') !== '') {
      await host.load(text('load'), { config: '', files: new Map(), signal })
    }
    return await callOther(host, request, text('model'), signal)
  }
  const engine: Engine = {
    backend: 'scripted',
    inspect: () => Promise.reject(new Error('everything is declared')),
    load: async ({ config }, { host }) => ({
      signature: { inputs: [], outputs: [] },
      execute: async (batch, { signal }) => {
        if (host === undefined) throw new Error('no engine has a host')
        const answer = async ({ request, sink }: EngineRequest): Promise<void> => {
          try {
            const { outputs } = await run(config, request, host, signal)
            sink.send({ index: 0, final: true, outputs, parameters: new Map() })
          } catch (error) {
            sink.fail(ServeError.from(error), 'maybe')
          }
        }
        await Promise.all(batch.map(answer))
        return TIMES
      },
      close: async () => {},
    }),
  }
  return { engine, state }
}

async function callOther(
  host: ModelHost,
  caller: StepRequest,
  modelName: string,
  signal: CancelSignal,
): Promise<RecordedResponse> {
  const { context, inputs } = caller
  const request = {
    modelName,
    modelVersion: '-1',
    requestId: context.id,
    correlationId: context.correlationId,
    flags: 0,
    timeoutUs: 0n,
    priority: 0n,
    parameters: context.parameters,
    inputs: inputs.map((input) => ({ ...input, name: 'X' })),
    requestedOutputs: [],
  }
  const sink = new RecordedResponses()
  const traced = context.parameters.has('traced') ? caller : undefined
  host.infer(request, sink, { signal, caller, traced, isDecoupled: false })
  const [response] = await sink.all
  if (response?.error !== undefined) throw response.error
  if (response === undefined) throw new Error('no response came')
  return response
}

function output(value: number) {
  const data = new Uint8Array(Float32Array.of(value).buffer)
  return { name: 'Y', datatype: 'FP32' as const, shape: [1], data }
}

function plus({ inputs: [input] }: StepRequest, added: number) {
  // Not slice(): a Buffer's shares its memory.
  const data = Uint8Array.from(input?.data ?? [])
  return output((new Float32Array(data.buffer)[0] ?? Number.NaN) + added)
}

const stored = () => ({
  add: { 'config.pbtxt': model(), 1: {} },
  call: { 'config.pbtxt': model(8), 1: {} },
  held: { 'config.pbtxt': model(), 1: {} },
  twice: { 'config.pbtxt': ensemble, 1: {} },
})

const repository = (t: Test): string => t.testdir(stored())

/** Makes what every start takes, and finds the ports that it opened. */
function environment() {
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const log = createLogger({ level: 'info', name: 'test', destination })
  const port = (name = 'httpPort'): number =>
    lines.map((line) => JSON.parse(line)).find((line) => line.message === 'server ready')[name]
  const health = createHealth()
  const settings = loadTracingSettings({})
  return { port, o: { log, health, settings, signal: new AbortController().signal } }
}

/** A repository that one process serves. */
async function serve(t: Test, argv: readonly string[] = [], path = repository(t)) {
  const { engine, state } = testEngine()
  const { port, o } = environment()
  const argument = `--model-repository=${path}`
  const { values: flags } = parseFlags(SERVE_FLAGS, [...LOOPBACK, argument, ...argv])
  const running = await startServe({ ...o, flags, engines: [engine] })
  t.teardown(() => running.close())
  const ask = async (path: string, body?: object) => {
    const request = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const answer = await fetch(`http://127.0.0.1:${port()}/v2/${path}`, request)
    const text = await answer.text()
    return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) }
  }
  const look = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port('consolePort')}/console/api/${path}`)
    return JSON.parse(await answer.text())
  }
  return { infer: client(port()), ask, look, state }
}

/** The same in processes of their own, as far as they know: a step and two routers over a broker. */
async function processes(t: Test, argv: readonly string[] = []) {
  const { engine, state } = testEngine()
  const server = await startNatsServer()
  t.teardown(() => server.stop())
  const all = [...LOOPBACK, `--nats=${server.url}`, `--model-repository=${repository(t)}`]
  const step = environment()
  const { values: flags } = parseFlags(STEP_FLAGS, all)
  const running = await startStep({ ...step.o, flags, engines: [engine] })
  t.teardown(() => running.close())
  const routers: { readonly running: Running; readonly infer: ReturnType<typeof client> }[] = []
  for (let i = 0; i < 2; i += 1) {
    const { port, o } = environment()
    const { values } = parseFlags(ROUTER_FLAGS, [...all, ...argv])
    const router = await startRouter({ ...o, flags: values })
    t.teardown(() => router.close())
    routers.push({ running: router, infer: client(port()) })
  }
  return { infer: routers[0]?.infer ?? client(0), routers, direct: client(step.port()), state }
}

/** Asks a model over REST with the value 1; its answer is the value or `reason: text`. */
function client(port: number) {
  return async (name: string, parameters: object = {}, signal?: AbortSignal) => {
    const inputs = [{ name: 'X', datatype: 'FP32', shape: [1], data: [1] }]
    const answer = await fetch(`http://127.0.0.1:${port}/v2/models/${name}/infer`, {
      method: 'POST',
      body: JSON.stringify({ inputs, parameters }),
      ...(signal !== undefined && { signal }),
    })
    const body: unknown = await answer.json()
    if (answer.ok) return Reflect.get(Object(body), 'outputs')[0].data[0]
    return `${answer.headers.get('tutti-error-reason')}: ${Reflect.get(Object(body), 'error')}`
  }
}

for (const [where, open] of [
  ['in one process', serve],
  ['over a broker', processes],
] as const) {
  const skip = open === processes && withoutNatsServer()
  await t.test(`a model calls others: ${where}`, { skip, timeout: 60_000 }, async (t) => {
    const { infer, state } = await open(t, ['--max-bls-depth=3'])
    t.equal(await infer('call', { model: 'add' }), 2)
    t.equal(await infer('call', { model: 'twice' }), 3, 'an ensemble')
    t.equal(await infer('call', { ready: 'twice' }), 1)
    t.equal(await infer('call', { ready: 'nope' }), 0)
    t.match(await infer('call', { model: 'nope' }), /^MODEL_NOT_FOUND: .*'nope' is not found/)
    t.match(
      await infer('call', { load: 'add' }),
      open === serve
        ? /^MODEL_CONTROL_REFUSED: .* is not allowed if polling is enabled/
        : /^MODEL_CONTROL_REFUSED: explicit model load \/ unload is not allowed: the flags of steps/,
    )
    t.match(
      await infer('call', { model: 'call' }),
      /^NESTING_TOO_DEEP: 'call' calls 'call' calls 'call' calls 'call' calls 'call': 4 calls deep, want at most 3$/,
    )
    const cancel = new AbortController()
    const left = infer('call', { model: 'held' }, cancel.signal).catch(() => 'left')
    await until('one is held', () => state.held === 1)
    cancel.abort()
    await until('one is cancelled', () => state.cancelled === 1)
    t.equal(await left, 'left', 'a client that goes away ends what was called for it')
  })
}

await t.test(
  'the line that says that a server is ready counts the models that failed',
  async (t) => {
    const { engine } = testEngine()
    const { port, o } = environment()
    const path = t.testdir({ ...stored(), broken: { 'config.pbtxt': 'max_batch_size: "', 1: {} } })
    const { values: flags } = parseFlags(SERVE_FLAGS, [...LOOPBACK, `--model-repository=${path}`])
    const running = await startServe({ ...o, flags, engines: [engine] })
    t.teardown(() => running.close())
    t.equal(port('failedModels'), 1)
  },
)

await t.test('in one process a model loads another, where clients may', async (t) => {
  const { infer } = await serve(t, ['--model-control-mode=explicit', '--load-model=call'])
  t.match(await infer('call', { model: 'add' }), /^MODEL_NOT_FOUND: /)
  t.equal(await infer('call', { load: 'twice', model: 'twice' }), 3)
})

await t.test('what a model calls with its trace has traces beneath its own', async (t) => {
  const folder = t.testdir({ models: stored() })
  const trace = ['mode=triton', `triton,file=${folder}/trace`, 'triton,log-frequency=1', 'rate=1']
  const argv = [...trace, 'level=TIMESTAMPS'].map((text) => `--trace-config=${text}`)
  const { infer } = await serve(t, argv, `${folder}/models`)
  const tracesOf = (index: number): readonly string[] =>
    JSON.parse(readFileSync(`${folder}/trace.${index}`, 'utf8')).flatMap(
      ({ id, model_name: name, parent_id: parent }: TraceEvent) =>
        name === undefined ? [] : `${id} ${name} ${parent ?? '-'}`,
    )
  t.equal(await infer('call', { model: 'twice', traced: '1' }), 3)
  t.same(tracesOf(0), ['4 add 2', '3 add 2', '2 twice 1', '1 call -'], 'as tritonserver')
  t.equal(await infer('call', { model: 'twice' }), 3)
  t.same(tracesOf(1), ['5 call -'])
  t.match(await infer('call', { model: 'nope', traced: '1' }), /^MODEL_NOT_FOUND: /)
  t.same(tracesOf(2), ['6 call -'])
})

await t.test('models of several repositories may have the same name', async (t) => {
  const ten = `${model()} parameters { key: "plus" value { string_value: "10" } }`
  const broken = () => ({ 'config.pbtxt': model().replace('scripted', 'nosuch'), 1: {} })
  const folder = t.testdir({
    a: stored(),
    b: {
      add: { 'config.pbtxt': ten, 1: {} },
      broken: broken(),
      plus: { 'config.pbtxt': ensemble, 1: {} },
      twice: { 'config.pbtxt': ensemble, 1: {} },
      waits: { 'config.pbtxt': ensemble.replaceAll('"add"', '"held"'), 1: {} },
    },
    c: {
      broken: broken(),
      caller: { 'config.pbtxt': model(), 1: {} },
      either: { 'config.pbtxt': ensemble, 1: {} },
    },
  })
  const [a, b, c] = [`${folder}/a`, `${folder}/b`, `${folder}/c`]
  const models = ['add', 'call', 'twice', 'plus', 'waits', 'caller', 'either']
  const { infer, ask, look } = await serve(
    t,
    [
      ...[b, c].map((path) => `--model-repository=${path}`),
      '--model-namespacing=true',
      '--console-port=0',
      '--model-control-mode=explicit',
      ...models.map((name) => `--load-model=${name}`),
    ],
    a,
  )
  const change = (name: string, what: string) => ask(`repository/models/${name}/${what}`, {})

  for (const name of ['add', 'twice']) {
    const error = `There are 2 identifiers of model '${name}' in global map, model namespace must be provided to resolve ambiguity.`
    t.equal(await infer(name), `MODEL_AMBIGUOUS: ${error}`)
    for (const path of ['', '/versions/1', '/config']) {
      t.match(await ask(`models/${name}${path}`), { status: 400, body: { error } })
    }
    t.equal((await ask(`models/${name}/ready`)).status, 400)
    const unknown = `requested model '${name}' is not available`
    t.match(await ask(`models/${name}/stats`), { status: 400, body: { error: unknown } })
  }
  t.equal(await infer('plus'), 21, 'an ensemble has the models of its own repository')
  t.match(await infer('either'), /^MODEL_NOT_FOUND: /, 'and of no other if there are several')
  t.equal(await infer('call', { model: 'add' }), 2, 'so has a model')
  t.equal(await infer('call', { ready: 'add' }), 1)
  t.equal(await infer('caller', { model: 'plus' }), 21, 'the only one is that of any')
  t.match(await infer('caller', { model: 'add' }), /^MODEL_NOT_FOUND: .*'add' is not found$/)
  t.equal(await infer('caller', { ready: 'add' }), 0)
  t.match(await infer(encodeURIComponent(`${a}::call`)), /not found/i)

  const { models: listed } = await look('overview')
  const kinds = { add: 'unknown', call: 'model', plus: 'ensemble', caller: 'model' }
  for (const [name, kind] of Object.entries(kinds)) {
    t.equal(listed.find((one: Named) => one.name === name).kind, kind, `the console has ${name}`)
  }
  const detail = await look('models/plus')
  t.match(detail.counts, { requests: 2 })
  const twice = { model: 'add', totals: { requests: 2 } }
  t.match(detail.graph.steps, [
    { ...twice, name: 'add#0' },
    { ...twice, name: 'add#1' },
  ])
  t.match(await look('models/held'), { usedBy: ['waits'] })

  const { body: config } = await ask('models/waits/config')
  t.equal(config.name, 'waits')
  const named = { model_name: 'held', model_namespace: a }
  t.match(config.ensemble_scheduling.step, [named, named])
  t.match(await ask('models/plus/ready'), { status: 200 })
  t.match(await ask('models/plus'), { body: { name: 'plus', versions: ['1'] } })
  t.match(await ask('models/plus/stats'), { body: { model_stats: [{ name: 'plus' }] } })
  const { body: statistics } = await ask('models/stats')
  const counted = ['add', 'add', 'call', 'caller', 'held', 'plus', 'twice', 'twice', 'waits']
  t.same(statistics.model_stats.map(({ name }: Named) => name).toSorted(), counted)
  const { body: index } = await ask('repository/index', {})
  t.same(
    index.map(({ name, state }: Named) => (state === 'READY' ? name : `not ${name}`)).join(' '),
    'add call held twice add not broken plus twice waits not broken caller not either',
  )

  t.equal((await change('add', 'unload')).status, 200)
  t.match(await infer('add'), /^MODEL_NOT_FOUND: .*'add' is not found$/)
  t.equal((await change('plus', 'load')).status, 200)
  t.equal(await infer('add'), 11, 'one is loaded, so the name means that')
  t.match(await infer('call', { model: 'add' }), /^MODEL_NOT_FOUND: /, 'but not to a neighbour')
  t.equal((await change('add', 'load')).status, 200)
  t.match(await infer('add'), /^MODEL_AMBIGUOUS: /)
  t.equal(await infer('call', { model: 'add' }), 2)
  const { status, body: failed } = await change('broken', 'load')
  t.equal(status, 400)
  for (const place of [b, c]) t.match(failed.error, `load failed for model '${place}::broken'`)
  t.match(await change('nosuch', 'load'), { status: 500 })
  t.equal((await change('nosuch', 'unload')).status, 200)
  t.match(await infer('call', { load: `${b}::add` }), /^INVALID_PARAMETER: invalid model name/)
})

await t.test(
  'a router that goes away under the call of a model is an error of that call',
  { skip: withoutNatsServer(), timeout: 60_000 },
  async (t) => {
    const { direct, routers, state } = await processes(t)
    t.equal(await direct('call', { model: 'twice' }), 3, 'also for a client of the step itself')
    const asked = direct('call', { model: 'held' })
    await until('one is held', () => state.held === 1)
    for (const { running } of routers) await running.close()
    t.match(await asked, /^STEP_LOST: /)
    await until('one is cancelled', () => state.cancelled === 1)
    t.match(await direct('call', { model: 'add' }), /^STEP_UNAVAILABLE: no router/)
    t.equal(await direct('add'), 2, 'and the step serves on')
  },
)

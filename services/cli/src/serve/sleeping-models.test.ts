// needs: nats
import { parseDescriptionJson, parseWantedByRouter, SLEEP_ANNOTATION } from '@tutti/api'
import type { Engine } from '@tutti/backends'
import {
  createHealth,
  createLogger,
  loadTracingSettings,
  parseFlags,
  type Running,
} from '@tutti/chassis'
import { startNatsServer, until, withoutNatsServer } from '@tutti/chassis/testing'
import { toAcceptedJson } from '@tutti/graph'
import { ROUTER_FLAGS, type StartRouterOptions, startRouter } from '@tutti/router'
import { ensembleRevision } from '@tutti/router/testing'
import { STEP_FLAGS, startStep } from '@tutti/step'
import t, { type Test } from 'tap'

const IO =
  'input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }'
/** The models, and what each adds. */
const MODELS = { one: 1, ten: 10, hundred: 100 } as const
const NAMES = Object.keys(MODELS)
const configOf = (added: number): string =>
  `backend: "plus" ${IO} parameters { key: "plus" value { string_value: "${added}" } }`
const step = (model: string, from: string, to: string): string =>
  `step { model_name: "${model}" model_version: -1 input_map { key: "X" value: "${from}" } output_map { key: "Y" value: "${to}" } }`
const GRAPH = `platform: "ensemble" ${IO} ensemble_scheduling {
  ${step('one', 'X', 't1')} ${step('ten', 't1', 't2')} ${step('hundred', 't2', 'Y')} }`
const LOAD_MS = 120_000

type Watch = NonNullable<StartRouterOptions['watch']>
type RevisionObject = Parameters<Parameters<Watch>[0]['onEvent']>[0]['object']

/** Adds what the configuration of its model says; a test decides when a load ends. */
class GatedEngine implements Engine {
  readonly backend = 'plus'
  /** Begins and ends of loads, in order. */
  readonly events: string[] = []
  /** Resolves when a model that has begun to load may end. */
  gate: () => Promise<void> = async () => {}

  readonly inspect = (): Promise<never> => Promise.reject(new Error('everything is declared'))

  readonly load: Engine['load'] = async ({ config }) => {
    this.events.push(`${config.name} begins`)
    await this.gate()
    this.events.push(`${config.name} ends`)
    return {
      signature: { inputs: [], outputs: [] },
      execute: async (batch) => {
        const added = Number(config.parameters['plus']?.string_value)
        for (const { request, sink } of batch) {
          const [x] = new Float32Array(Uint8Array.from(request.inputs[0]?.data ?? []).buffer)
          const data = new Uint8Array(Float32Array.of((x ?? Number.NaN) + added).buffer)
          const outputs = [{ name: 'Y', datatype: 'FP32' as const, shape: [1], data }]
          sink.send({ index: 0, final: true, outputs, parameters: new Map() })
        }
        return { computeInputNs: 1, computeInferNs: 1, computeOutputNs: 1 }
      },
      close: async () => {},
    }
  }
}

/** Makes what a process is started with, and finds the ports that it opened. */
function environment(argv: readonly string[]) {
  const lines: string[] = []
  const servers = ['grpc', 'http', 'metrics'].flatMap((server) => [
    `--${server}-address=127.0.0.1`,
    `--${server}-port=0`,
  ])
  const destination = { write: (line: string) => lines.push(line) }
  const o = {
    log: createLogger({ level: 'info', name: 'test', destination }),
    health: createHealth(),
    settings: loadTracingSettings({}),
    signal: new AbortController().signal,
  }
  const url = (name: string, path: string): string => {
    const ports = lines.map((line) => JSON.parse(line)).find((line) => line.httpPort !== undefined)
    return `http://127.0.0.1:${ports[`${name}Port`]}${path}`
  }
  return { argv: [...servers, ...argv], o, url }
}

/** Steps that come and go, in place of a cluster with an operator. */
class Steps {
  readonly engine = new GatedEngine()
  readonly #flags: readonly string[]
  readonly #running = new Map<string, Promise<Running>>()
  #descriptionUrl = (): string => ''

  constructor(flags: readonly string[]) {
    this.#flags = flags
  }

  get models(): readonly string[] {
    return [...this.#running.keys()].toSorted()
  }

  /** Starts the step of a model, unless it is there. */
  async start(model: string): Promise<void> {
    const known = this.#running.get(model)
    const { argv, o, url } = environment([...this.#flags, `--model=${model}`])
    const { values: flags } = parseFlags(STEP_FLAGS, argv)
    const running = known ?? startStep({ ...o, flags, engines: [this.engine] })
    this.#running.set(model, running)
    if (known === undefined) this.#descriptionUrl = () => url('metrics', '/tutti/v1/served')
    await running
  }

  /** Ends the step of a model as Kubernetes does: what it executes ends first. */
  async stop(model: string): Promise<void> {
    const running = await this.#running.get(model)
    this.#running.delete(model)
    await running?.stopAccepting()
    await running?.drain({ signal: AbortSignal.timeout(30_000) })
    await running?.close()
  }

  /** Starts a model once, and ends it again. @returns the revision that an operator accepts of it. */
  async accept(model: string): Promise<RevisionObject> {
    await this.start(model)
    const { models } = parseDescriptionJson(await (await fetch(this.#descriptionUrl())).json())
    await this.stop(model)
    const found = models.find(({ name }) => name === model)
    if (found?.config === undefined) throw new Error(`${model} is not described`)
    const data = toAcceptedJson({
      kind: 'Model',
      modelName: model,
      resource: { name: model, uid: model, generation: 1 },
      config: found.config,
      versions: found.versions.map(({ version, revision }) => ({ version, revision })),
    })
    const annotations = { [SLEEP_ANNOTATION]: JSON.stringify({ loadMs: LOAD_MS }) }
    const metadata = { name: `${model}-1`, creationTimestamp: '2026-01-01T00:00:00Z', annotations }
    return { metadata, revision: 1, data }
  }
}

/** A router whose three Models sleep, and the steps that its demand starts. @param more - flags of the router. */
async function open(t: Test, more: readonly string[] = []) {
  const nats = await startNatsServer()
  t.teardown(() => nats.stop())
  const folder = t.testdir(
    Object.fromEntries(
      Object.entries(MODELS).map(([name, added]) => [
        name,
        { 'config.pbtxt': configOf(added), 1: { model: '' } },
      ]),
    ),
  )
  const steps = new Steps([`--nats=${nats.url}`, `--model-repository=${folder}`])
  const accepted: RevisionObject[] = []
  for (const model of NAMES) accepted.push(await steps.accept(model))
  const models = Object.fromEntries(
    Object.entries(MODELS).map(([name, added]) => [name, configOf(added)]),
  )
  accepted.push(ensembleRevision({ name: 'graph-1', model: 'graph', config: GRAPH, models }))
  const { argv, o, url } = environment([`--nats=${nats.url}`, '--kubernetes', ...more])
  const watch: Watch = ({ onEvent, onSynced }) => {
    for (const object of accepted) onEvent({ type: 'added', object })
    onSynced()
    return { close: async () => {} }
  }
  const router = await startRouter({ ...o, flags: parseFlags(ROUTER_FLAGS, argv).values, watch })
  const closing = new AbortController()
  steps.engine.events.length = 0
  const asked: (readonly string[])[] = []
  const following = followDemand({ url, signal: closing.signal, steps, asked })
  t.teardown(async () => {
    closing.abort()
    await following
    await Promise.all(steps.models.map((model) => steps.stop(model)))
    await router.close()
  })
  return { steps, asked, infer: (model: string, value: number) => infer(url, model, value), url }
}

/** Starts the steps of the models that a router wants, as soon as it says so. */
async function followDemand(o: {
  readonly url: (name: string, path: string) => string
  readonly signal: AbortSignal
  readonly steps: Steps
  readonly asked: (readonly string[])[]
}): Promise<void> {
  let seen = ''
  const starts: Promise<void>[] = []
  while (!o.signal.aborted) {
    try {
      const path = `/tutti/v1/wanted?seen=${seen}`
      const answer = await fetch(o.url('metrics', path), { signal: o.signal })
      const wanted = parseWantedByRouter(await answer.json())
      seen = wanted.seen
      o.asked.push(wanted.models)
      for (const model of wanted.models) starts.push(o.steps.start(model))
    } catch (error) {
      if (!o.signal.aborted) throw error
    }
  }
  await Promise.all(starts)
}

async function infer(
  url: (name: string, path: string) => string,
  model: string,
  value: number,
): Promise<unknown> {
  const inputs = [{ name: 'X', datatype: 'FP32', shape: [1], data: [value] }]
  const answer = await fetch(url('http', `/v2/models/${model}/infer`), {
    method: 'POST',
    body: JSON.stringify({ inputs }),
  })
  const body = JSON.parse(await answer.text())
  return answer.ok ? body.outputs[0].data[0] : body.error
}

const options = { skip: withoutNatsServer(), timeout: 240_000 }

await t.test('the first request of a graph starts all its models at once', options, async (t) => {
  const { steps, asked, infer, url } = await open(t)
  t.equal((await fetch(url('http', '/v2/health/ready'))).status, 200, 'models that sleep are ready')
  t.equal((await fetch(url('http', '/v2/models/graph/ready'))).status, 200)
  await until('the demand is known', () => asked.length > 0 || undefined)
  t.same([steps.models, asked], [[], [[]]], 'nothing runs, and no request waits')
  // A load ends only when all have begun: one after the other they would wait for ever.
  const all = Promise.withResolvers<void>()
  steps.engine.gate = () => {
    if (steps.engine.events.length === NAMES.length) all.resolve()
    return all.promise
  }
  t.equal(await infer('graph', 1), 112)
  const begun = NAMES.map((name) => `${name} begins`)
  t.same(steps.engine.events.slice(0, 3).toSorted(), begun.toSorted())
  t.same(asked[1], NAMES.toSorted(), 'asked for together')
  t.same(
    steps.engine.events.slice(3).toSorted(),
    NAMES.map((name) => `${name} ends`).toSorted(),
    'each once',
  )
})

await t.test('a client whose time is over learns that the model starts', options, async (t) => {
  const { steps, infer, url } = await open(t)
  const { promise, resolve } = Promise.withResolvers<void>()
  steps.engine.gate = () => promise
  const inputs = [{ name: 'X', datatype: 'FP32', shape: [1], data: [1] }]
  const answer = await fetch(url('http', '/v2/models/graph/infer'), {
    method: 'POST',
    headers: { 'tutti-timeout-ms': '3000' },
    body: JSON.stringify({ inputs }),
  })
  t.equal(answer.status, 503)
  t.match(await answer.json(), { error: /^in ensemble 'graph', model 'one' is starting: waited / })
  resolve()
  t.equal(await infer('graph', 2), 113, 'the start went on')
})

const MOST_BYTES = 64 * 1024

await t.test('what waits counts in the bytes in flight of its router', options, async (t) => {
  const { steps, asked, url } = await open(t, [`--max-inflight-bytes=${MOST_BYTES}`])
  const { promise, resolve } = Promise.withResolvers<void>()
  steps.engine.gate = () => promise
  const inputs = [{ name: 'X', datatype: 'FP32', shape: [1], data: [1] }]
  // White space is as good as any bytes.
  const body = JSON.stringify({ inputs }) + ' '.repeat(MOST_BYTES * 0.6)
  const send = async (signal?: AbortSignal): Promise<readonly [number, string]> => {
    const path = url('http', '/v2/models/one/infer')
    const answer = await fetch(path, { method: 'POST', body, ...(signal && { signal }) })
    return [answer.status, await answer.text()]
  }
  const gone = new AbortController()
  const left = send(gone.signal).catch(() => 'left')
  await until('it waits', () => asked.at(-1)?.includes('one') || undefined)
  t.match(await send(), [503, /bytes/])
  gone.abort()
  t.equal(await left, 'left')
  await until('its bytes are free', async () => (asked.at(-1)?.length === 0 ? true : undefined))
  const held = send()
  await until('the next one waits', () => asked.at(-1)?.includes('one') || undefined)
  resolve()
  t.match(await held, [200, /"data":\[2\.0\]/])
})

const CYCLES = 50
const CLIENTS = 4

await t.test(
  'requests at every moment of sleep and wake: none lost, none wrong',
  options,
  async (t) => {
    const { steps, infer } = await open(t)
    const wrong: unknown[] = []
    let answers = 0
    const over = new AbortController()
    const clients = Array.from({ length: CLIENTS }, async (_, client) => {
      for (let i = 0; !over.signal.aborted; i++) {
        const value = client * 1000 + (i % 1000)
        // One of the models, or all, in turn.
        const [model, added] = i % 2 === 0 ? (['graph', 111] as const) : (['ten', 10] as const)
        const got = await infer(model, value)
        if (got !== value + added) wrong.push({ model, value, got })
        answers += 1
      }
    })
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      const before = answers
      await until('all have answered again', () => answers >= before + 2 * CLIENTS || undefined)
      // Under requests, which an operator would not do: so every moment of an end is met.
      await Promise.all(NAMES.map((name) => steps.stop(name)))
    }
    over.abort()
    await Promise.all(clients)
    t.same(wrong, [])
    t.ok(answers >= 2 * CLIENTS * CYCLES)
    const starts = steps.engine.events.filter((event) => event.endsWith('begins')).length
    t.ok(starts >= CYCLES, `${starts} starts`)
  },
)

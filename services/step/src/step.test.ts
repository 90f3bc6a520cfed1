import type { StepDescription } from '@tutti/api'
import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { ServerMetrics } from '@tutti/telemetry'
import type { ExecuteOptions, InferRequest, ModelTarget } from '@tutti/tensor'
import t, { type Test } from 'tap'
import type { Step } from './step.ts'
import type { StepOptions } from './step-options.ts'
import { openTestStep } from './testing/open-test-step.ts'
import { ScriptedEngine, type ScriptedModel } from './testing/scripted-engine.ts'
import { floats, RecordingSink, requestContext } from './testing/step-builders.ts'

const IO = `
input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }`
const MODEL = `backend: "scripted" max_batch_size: 4 ${IO}`
const ENSEMBLE = `platform: "ensemble" ${IO}
ensemble_scheduling { step { model_name: "a" model_version: -1
  input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } }`

/** The parts of a test's request that differ from an ordinary request to the first version that the step serves. */
type Sent = Partial<ModelTarget & InferRequest & Pick<ExecuteOptions, 'deadlineAt'>>

type Files = Readonly<Record<string, string | Buffer>>

/** A repository of models: config text, or the whole directory. Version 1 is there unless a directory says otherwise. */
async function open(
  t: Test,
  models: Readonly<Record<string, string | Readonly<Record<string, string | Files>>>>,
  o: Partial<StepOptions> & { readonly engine?: ScriptedEngine } = {},
) {
  const directory = t.testdir(
    Object.fromEntries(
      Object.entries(models).map(([name, model]) => [
        name,
        typeof model === 'string' ? { 'config.pbtxt': model, 1: { 'model.bin': name } } : model,
      ]),
    ),
  )
  const engine = o.engine ?? new ScriptedEngine()
  engine.isImmediate = true
  const step = await openTestStep([directory], { engines: [engine], ...o })
  t.teardown(() => step.close())
  const description = await step.control.describe()
  const infer = async (sent: Sent = {}): Promise<string> => {
    const sink = send(step, description, sent)
    await sink.all
    return sink.outcome
  }
  return { step, engine, description, infer, directory }
}

/** A model with versions 1 to 3. */
function threeVersions(policy: string) {
  return {
    'config.pbtxt': `${MODEL} version_policy { ${policy} }`,
    1: { f: '1' },
    2: { f: '2' },
    3: { f: '3' },
  }
}

/** Sends a request, to the first version that the step serves unless it says otherwise. */
function send(step: Step, { models: [served] }: StepDescription, sent: Sent = {}): RecordingSink {
  const { version = 0, revision = '' } = served?.versions[0] ?? {}
  const target = { model: served?.name ?? '', version, revision, ...sent }
  const inputs = [floats('x', [1, 4])]
  const request = { context: requestContext({ id: 'q' }), requestedOutputs: [], inputs, ...sent }
  const { signal } = new AbortController()
  const { deadlineAt } = sent
  const sink = new RecordingSink()
  const options = { signal, ...(deadlineAt !== undefined && { deadlineAt }) }
  step.executor(target).execute(request, sink, options)
  return sink
}

/** `name: reason` or `name/version: STATE reason` of everything that a step describes. */
function states(description: StepDescription): readonly string[] {
  return description.models.flatMap(({ name, reason, versions }) =>
    versions.length === 0
      ? [`${name}: ${reason}`]
      : versions.map((v) => `${name}/${v.version}: ${v.state} ${v.reason}`.trimEnd()),
  )
}

await t.test('serves what loads and lists what does not with its reason', async (t) => {
  const engine = new ScriptedEngine()
  engine.failures.set('broken/1', new ServeError('MODEL_LOAD_FAILED', 'no such operator'))
  const { description, infer } = await open(
    t,
    {
      a: MODEL,
      broken: MODEL,
      ens: ENSEMBLE,
      misnamed: `name: "other" ${MODEL}`,
      plan: `platform: "tensorrt_plan" ${IO}`,
      ordered: `${MODEL} sequence_batching { iterative_sequence: true oldest { max_candidate_sequences: 4 preserve_ordering: true } }`,
      typo: 'max_batchsize: 4',
    },
    { engine },
  )
  t.match(states(description), [
    'a/1: READY',
    'broken/1: UNAVAILABLE Internal: no such operator',
    /^misnamed: unexpected directory name 'misnamed' for model 'other'/,
    /^ordered\/1: UNAVAILABLE Unsupported: 'sequence_batching.oldest.preserve_ordering \(with iterative_sequence\)' is not supported here, for model 'ordered'/,
    /^plan\/1: UNAVAILABLE Invalid argument: .*tensorrt/,
    /^typo: /,
  ])
  t.equal(await infer(), 'OK')
  t.match(description.models[0], { config: { name: 'a', backend: 'scripted' } })
  t.match(description.models[0]?.versions[0]?.revision, /^[0-9a-f]{64}$/)
})

await t.test('unsupported settings are named', async (t) => {
  const cases = {
    'instance_group.passive': 'instance_group { kind: KIND_CPU passive: true }',
    'instance_group.secondary_devices':
      'instance_group { kind: KIND_CPU secondary_devices { kind: KIND_NVDLA } }',
    model_repository_agents: 'model_repository_agents { agents { name: "checksum" } }',
  }
  const names = Object.keys(cases)
  const texts = Object.values(cases)
  const { description } = await open(
    t,
    Object.fromEntries(texts.map((text, i) => [`m${i}`, `${MODEL} ${text}`])),
  )
  t.same(
    states(description),
    names.map(
      (name, i) =>
        `m${i}/1: UNAVAILABLE Unsupported: '${name}' is not supported here, for model 'm${i}'`,
    ),
  )
})

await t.test('a model of two repositories and one without versions say so', async (t) => {
  const { description } = await open(t, { a: { 'config.pbtxt': MODEL } })
  t.match(states(description), [
    "a: at least one version must be available under the version policy of model 'a'",
  ])
  const directory = t.testdir({ one: { m: { 1: {} } }, two: { m: { 1: {} } } })
  const paths = [`${directory}/one`, `${directory}/two`]
  const step = await openTestStep(paths, { engines: [new ScriptedEngine()] })
  t.teardown(() => step.close())
  t.match(states(await step.control.describe()), [/^m: model appears in two or more repositories/])
})

await t.test(
  'the version policy chooses; one version that fails takes the others with it',
  async (t) => {
    const engine = new ScriptedEngine()
    engine.failures.set('c/3', new ServeError('MODEL_LOAD_FAILED', 'bad file'))
    const { description, engine: used } = await open(
      t,
      {
        a: threeVersions('latest { num_versions: 2 }'),
        b: threeVersions('specific { versions: [ 1, 9 ] }'),
        c: threeVersions('all { }'),
      },
      { engine },
    )
    t.same(states(description), [
      'a/2: READY',
      'a/3: READY',
      'b/1: READY',
      'c/1: UNAVAILABLE unloaded',
      'c/2: UNAVAILABLE unloaded',
      'c/3: UNAVAILABLE Internal: bad file',
    ])
    t.equal(used.model('c/1').isClosed, true)
    const revisions = description.models.flatMap((m) => m.versions.map((v) => v.revision))
    t.not(revisions[0], revisions[1], 'versions differ in their files')
  },
)

await t.test('models load in parallel, but only so many at a time', async (t) => {
  const names = Array.from({ length: 12 }, (_, i) => `m${i}`)
  const models = Object.fromEntries(names.map((name) => [name, MODEL]))
  for (const [limit, most] of [
    [undefined, 4],
    [2, 2],
  ] as const) {
    const engine = new ScriptedEngine()
    const options = limit === undefined ? {} : { loadParallelism: limit }
    await open(t, models, { engine, ...options })
    t.equal(engine.loaded.size, 12)
    t.ok(engine.mostParallelLoads <= most, `at most ${most}`)
  }
})

await t.test('instances are counted from the groups', async (t) => {
  const group = 'instance_group { kind: KIND_CPU count: 2 } instance_group { kind: KIND_CPU }'
  const { engine, step } = await open(t, { a: MODEL, b: `${MODEL} ${group}` })
  t.equal(engine.options.get('a/1')?.instances, 1)
  t.equal(engine.options.get('b/1')?.instances, 3)
  t.equal(step.load().freeSlots, 4)
  t.match(step.load().models, [
    { model: 'a', version: 1, inFlight: 0, queued: 0, freeSlots: 1 },
    { model: 'b', freeSlots: 3 },
  ])
})

await t.test('a request is refused before anything executes', async (t) => {
  const { step, description, engine } = await open(t, {
    a: MODEL,
    c: `${MODEL} version_policy { specific { versions: 7 } }`,
  })
  const cases: readonly (readonly [Sent, RegExp])[] = [
    [{ revision: 'f00' }, /^UNAVAILABLE REVISION_GONE model 'a' version 1: revision f00 is pinned/],
    [{ model: 'x' }, /^NOT_FOUND MODEL_NOT_FOUND Request for unknown model: 'x' is not found/],
    [
      { version: 9 },
      /^NOT_FOUND MODEL_NOT_FOUND Request for unknown model: 'a' version 9 is not found/,
    ],
    [{ deadlineAt: 0 }, /^DEADLINE_EXCEEDED DEADLINE_EXCEEDED/],
    [
      { inputs: [] },
      /^INVALID_ARGUMENT INVALID_REQUEST \[request id: q\] expected 1 inputs but got 0 inputs/,
    ],
    [
      { requestedOutputs: ['n'] },
      /^INVALID_ARGUMENT INVALID_REQUEST unexpected inference output 'n' for model 'a'/,
    ],
  ]
  for (const [sent, want] of cases) {
    const sink = send(step, description, sent)
    t.match(sink.outcome, want, 'answered at once')
    const { model = 'a', version = 1 } = sent
    const details = { model, version: String(version), replica: 'r1' }
    t.match(sink.responses, [{ final: true, outputs: [], error: { details } }])
  }
  t.equal(send(step, description, { revision: 'f00' }).executed, 'no', 'another may execute it')
  t.equal(engine.model('a/1').executions.length, 0)
})

await t.test('a version that is not ready is refused', async (t) => {
  const engine = new ScriptedEngine()
  engine.failures.set('a/1', new ServeError('MODEL_LOAD_FAILED', 'no'))
  const { infer } = await open(t, { a: MODEL }, { engine })
  t.equal(
    await infer(),
    "UNAVAILABLE MODEL_NOT_READY Request for unknown model: 'a' version 1 is not at ready state",
  )
})

await t.test('a model with a word on whether it is ready is asked', async (t) => {
  const { step, engine } = await open(t, { a: MODEL, b: MODEL })
  engine.model('a/1').isReady = async () => false
  t.match(step.served(), [{ versions: [{ judgesReadiness: true }] }, { name: 'b' }])
  t.notOk('judgesReadiness' in (step.served()[1]?.versions[0] ?? {}))
  t.equal(await step.control.isReady?.('a', 1), false)
  t.equal(await step.control.isReady?.('b', 1), true)
  t.equal(await step.control.isReady?.('b', 2), false, 'there is no such version')
})

await t.test('statistics are kept per version and shown as metrics', async (t) => {
  const metrics = new ServerMetrics()
  const { step, infer } = await open(
    t,
    { a: `${MODEL} metric_tags { key: "team" value: "x" }`, b: MODEL },
    { metrics },
  )
  await infer()
  await infer()
  t.match(await step.control.statistics('', ''), [
    { name: 'a', version: '1', inferenceCount: 2n, success: { count: 2n } },
    { name: 'b', inferenceCount: 0n },
  ])
  t.equal((await step.control.statistics('a', '1')).length, 1)
  t.same(await step.control.statistics('a', '2'), [])
  t.same(await step.control.statistics('z', ''), [])
  const text = await metrics.render()
  t.match(text, 'nv_inference_request_success{model="a",version="1",_team="x"} 2')
  await step.close()
  t.notMatch(await metrics.render(), 'model="a"')
})

await t.test(
  'draining finishes what was accepted and refuses the rest; closing releases the engines',
  async (t) => {
    const { step, engine, description, infer } = await open(t, { a: MODEL })
    const model = engine.model('a/1')
    model.isImmediate = false
    const accepted = [1, 2, 3].map(() => send(step, description))
    const drained = step.drain()
    t.equal(step.load().inFlight, 3)
    t.match(await infer(), /^UNAVAILABLE SERVER_STOPPING \[request id: q\] Server is stopping, /)
    for (let i = 1; i <= 3; i += 1) {
      await model.begun(i)
      model.at(i - 1).finish()
    }
    await drained
    await Promise.all(accepted.map(({ all }) => all))
    t.same(
      accepted.map(({ outcome }) => outcome),
      ['OK', 'OK', 'OK'],
    )
    await step.close()
    t.equal(model.isClosed, true)
    t.same(states(await step.control.describe()), ['a/1: UNAVAILABLE unloaded'])
  },
)

await t.test('a listener hears of changes until it is taken back', async (t) => {
  const { step } = await open(t, { a: MODEL })
  let changes = 0
  const stopListening = step.onChange(() => (changes += 1))
  step.models.unload('a')
  t.equal(changes, 1)
  stopListening()
  await step.models.load('a')
  t.equal(changes, 1)
})

await t.test('closing without a drain answers what is left', async (t) => {
  const { step, engine, description } = await open(t, { a: MODEL })
  engine.model('a/1').isImmediate = false
  const sink = send(step, description)
  await step.close()
  await sink.all
  t.match(sink.outcome, /^UNAVAILABLE ENGINE_STOPPED \[request id: q\] Server is stopping, /)
  t.equal(step.load().inFlight, 0)
})

await t.test('labels come with the description', async (t) => {
  const { description } = await open(t, {
    a: {
      'config.pbtxt': MODEL.replace('name: "y"', 'name: "y" label_filename: "labels.txt"'),
      'labels.txt': 'cat\ndog\n',
      1: {},
    },
  })
  t.same(description.models[0]?.labels, { y: ['cat', 'dog'] })
})

await t.test("a label file that leads out is refused with Triton's text", async (t) => {
  const config = MODEL.replace('name: "y"', 'name: "y" label_filename: "../labels.txt"')
  const { description } = await open(t, { a: { 'config.pbtxt': config, 1: {} } })
  t.equal(
    description.models[0]?.reason,
    "label file path '../labels.txt' for output 'y' in model 'a' is outside model directory",
  )
})

await t.test('an engine that goes on executing does not keep the step open', async (t) => {
  const engine = new ScriptedEngine()
  engine.onLoad = (model: ScriptedModel) => {
    model.close = () => new Promise(() => {})
  }
  const clock = createManualClock()
  const { step } = await open(t, { a: MODEL }, { engine, clock })
  const closed = step.close()
  clock.advance(2000)
  await closed
  t.equal(step.isBusy, true)
  t.equal(clock.pending, 0)
})

await t.test('an engine that fails to close does not keep the step open', async (t) => {
  const engine = new ScriptedEngine()
  engine.onLoad = (model: ScriptedModel) => {
    model.close = () => Promise.reject(new Error('stuck'))
  }
  const { step } = await open(t, { a: MODEL }, { engine })
  await step.close()
  t.same(states(await step.control.describe()), ['a/1: UNAVAILABLE unloaded'])
})

import { join } from 'node:path'
import { createEngines } from '@tutti/backends'
import { parseBuiltin, toModelConfig, toStepText } from '@tutti/builtins'
import { silentLogger } from '@tutti/chassis'
import { until } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { ModelTarget, NamedTensor } from '@tutti/tensor'
import { requestContext } from '@tutti/tensor/testing'
import t from 'tap'
import type { Step } from '../step.ts'
import { openTestStep, stepOptions } from '../testing/open-test-step.ts'
import { RecordingSink } from '../testing/step-builders.ts'
import { BuiltinSteps } from './builtin-steps.ts'

const BASIC = join(import.meta.dirname, '../../../../model_repository/.variants/fixtures/basic')
const HOST: ModelTarget = { model: '/builtins', version: 1, revision: 'builtins' }

/** The text of a built-in over two numbers. */
function textOf(given: object, input = 'input', datatype: 'FP32' | 'INT64' = 'FP32'): string {
  const { step } = parseBuiltin(given)
  const inputs = new Map([[input, { datatype, dims: [2] }]])
  const made = step && toModelConfig(step, { modelName: 'm', inputs })
  if (made?.config === undefined) throw new Error(JSON.stringify(made?.faults))
  return toStepText(made.config)
}

const tensor = (
  name: string,
  datatype: NamedTensor['datatype'],
  values: ArrayBufferView,
): NamedTensor => ({
  name,
  datatype,
  shape: [2],
  data: new Uint8Array(values.buffer),
})
const FLOATS = tensor('input', 'FP32', new Float32Array([1, 2]))

/** Sends a request for a built-in. */
function send(
  step: Step,
  builtin: string,
  o: {
    readonly target?: ModelTarget
    readonly input?: NamedTensor
    readonly signal?: AbortSignal
  } = {},
): RecordingSink {
  const { target = HOST, input = FLOATS, signal = new AbortController().signal } = o
  const sink = new RecordingSink()
  const request = {
    context: requestContext(),
    inputs: [input],
    requestedOutputs: [],
    program: builtin,
  }
  step.executor(target).execute(request, sink, { signal })
  return sink
}

async function outcomeOf(sink: RecordingSink): Promise<string> {
  await sink.all
  return sink.outcome
}

const open = async (builtins: boolean, paths: readonly string[] = []): Promise<Step> =>
  await openTestStep(paths, { builtins, engines: createEngines({ log: silentLogger }) })

await t.test('what a text does not name rightly is refused, and nothing stays', async (t) => {
  const step = await open(true)
  t.teardown(() => step.close())
  const cast = textOf({ name: 'cast', datatype: 'INT64' })
  const cases: readonly (readonly [string, RegExp])[] = [
    ['', /MALFORMED_MESSAGE/],
    ['{}', /MALFORMED_MESSAGE/],
    ['[1]', /MALFORMED_MESSAGE/],
    [cast.replace('cast', 'mould'), /UNSUPPORTED built-in 'mould', name: got "mould"/],
    [cast.replace('INT64', 'INT65'), /UNSUPPORTED built-in 'cast', datatype: got "INT65"/],
    [cast.replace('FP32', 'FP33'), /MALFORMED_MESSAGE/],
    [cast.replace('"input"', '"other"'), /UNSUPPORTED built-in 'cast', inputs\.input: got none/],
  ]
  for (const [text, refusal] of cases) {
    const sink = send(step, text)
    t.match(await outcomeOf(sink), refusal, text)
    t.equal(sink.executed, 'no')
  }
  t.match(
    await outcomeOf(send(step, cast, { input: { ...FLOATS, shape: [2, 1] } })),
    /INVALID_ARGUMENT/,
    'the request is checked',
  )
  t.equal(await outcomeOf(send(step, cast)), 'OK')
  t.same(
    step.load().models.map(({ model, version }) => [model, version]),
    [['/builtins', 1]],
    'one is loaded',
  )
})

await t.test('only a step that offers them runs any, others those of their files', async (t) => {
  const step = await open(false, [BASIC])
  t.teardown(() => step.close())
  const text = textOf({ name: 'labelLookup', file: 'labels.txt' }, 'indexes', 'INT64')
  const input = tensor('indexes', 'INT64', new BigInt64Array([2n, 0n]))
  t.same(
    step.served().filter(({ name }) => name === '/builtins'),
    [],
  )
  t.match(await outcomeOf(send(step, text, { input })), /MODEL_NOT_FOUND this step does not run/)
  const revision = step.served().find(({ name }) => name === 'labels')?.versions[0]?.revision ?? ''
  const target = { model: 'labels', version: 1, revision }
  const sink = send(step, text, { target, input })
  t.equal(await outcomeOf(sink), 'OK')
  t.equal(
    Buffer.from(sink.responses[0]?.outputs[0]?.data ?? []).toString('latin1'),
    '\u0004\0\0\0bird\u0003\0\0\0cat',
  )
  const other = { ...target, revision: 'other' }
  t.match(await outcomeOf(send(step, text, { target: other, input })), /REVISION_GONE/)
  const missing = textOf({ name: 'labelLookup', file: 'names.txt' }, 'indexes', 'INT64')
  t.match(
    await outcomeOf(send(step, missing, { target, input })),
    /MODEL_LOAD_FAILED model 'labels', file names\.txt: it is not beside the model/,
  )
  t.equal(step.load().models.filter(({ model }) => model === 'labels').length, 2)
  step.models.unload('labels')
  await until('they end with their model', () =>
    step.load().models.every(({ model }) => model !== 'labels'),
  )
  t.match(await outcomeOf(send(step, text, { target, input })), /MODEL_NOT_READY/)
})

await t.test('those that were not used for the longest time make room', async (t) => {
  const builtins = new BuiltinSteps({
    settings: { ...stepOptions(), engines: createEngines({ log: silentLogger }) },
    areOffered: true,
    maxLoaded: 3,
    findPinned: () => ({ directories: [] }),
  })
  t.teardown(() => builtins.close())
  const run = (least: number): RecordingSink => {
    const sink = new RecordingSink()
    const request = { context: requestContext(), inputs: [FLOATS], requestedOutputs: [] }
    const o = { signal: new AbortController().signal }
    builtins.execute(HOST, textOf({ name: 'clip', min: least }), { request, sink, o })
    return sink
  }
  const loaded = () => builtins.loaded.map(({ loaded: model }) => model)
  for (const least of [0, 1, 2]) t.equal(await outcomeOf(run(least)), 'OK')
  const [first, second, third] = loaded()
  for (const least of [0, 3]) t.equal(await outcomeOf(run(least)), 'OK')
  t.same([loaded().length, loaded().includes(second ?? ('' as never))], [3, false])
  t.ok(first && third && loaded().includes(first) && loaded().includes(third))
  const all = Array.from({ length: 12 }, (_, i) => run(i % 6))
  for (const sink of all) t.equal(await outcomeOf(sink), 'OK', 'more than there is room for')
  t.equal(loaded().length, 3)
})

await t.test('a caller that leaves while one is loaded is answered at once', async (t) => {
  const step = await open(true)
  t.teardown(() => step.close())
  const leaving = new AbortController()
  const text = textOf({ name: 'sigmoid' })
  const sink = send(step, text, { signal: leaving.signal })
  leaving.abort(new ServeError('CANCELLED', 'the caller left'))
  t.match(await outcomeOf(sink), /^CANCELLED CANCELLED the caller left/)
  t.equal(await outcomeOf(send(step, text)), 'OK')
})

await t.test('a step that drains answers what it has, and takes nothing new', async (t) => {
  const step = await open(true)
  const [text, other] = [textOf({ name: 'sigmoid' }), textOf({ name: 'softmax' })]
  t.equal(await outcomeOf(send(step, text)), 'OK')
  const last = send(step, text)
  const drained = step.drain()
  t.match(await outcomeOf(send(step, text)), /SERVER_STOPPING/)
  t.match(await outcomeOf(send(step, other)), /SERVER_STOPPING/)
  t.equal(await outcomeOf(last), 'OK')
  await drained
  await step.close()
  t.same(step.load().models, [])
})

import { deepStrictEqual } from 'node:assert/strict'
import { type CallContext, openCallScope, parseFlags, systemClock } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { ClientRequests } from '@tutti/serving'
import { readTraceFlags, TRACE_FLAGS, traceRequests } from '@tutti/telemetry'
import type { InferRequest, StepResponse } from '@tutti/tensor'
import { responsesTo } from '@tutti/tensor/testing'
import * as fc from 'fast-check'
import t from 'tap'
import {
  chain,
  ensembleIo,
  floats,
  oneToOne,
  quiet,
  request,
  type ScriptedModel,
  scriptedRouter,
  settle,
  step,
} from '../testing/index.ts'

const one = chain('slow')
const outer = `${ensembleIo} ensemble_scheduling { ${step('inner', 'IN', 'OUT', { names: ['IN', 'OUT'] })} }`
const NAMED = { steps: [{ name: 'only' }] }

interface Waiting {
  readonly answer: () => void
  readonly fail: (error: ServeError) => void
}

/** A model whose requests a test ends. */
function slowModel(): { readonly model: ScriptedModel; readonly waiting: Waiting[] } {
  const waiting: Waiting[] = []
  const model: ScriptedModel = {
    config: oneToOne,
    run: (_inputs, _envelope, signal) =>
      new Promise((resolve, reject) => {
        const onAbort = (): void => reject(ServeError.from(signal.reason))
        signal.addEventListener('abort', onAbort, { once: true })
        waiting.push({ answer: () => resolve(new Map([['Y', floats('Y', [1])]])), fail: reject })
      }),
  }
  return { model, waiting }
}

async function outcome(stream: AsyncIterable<StepResponse>): Promise<string> {
  try {
    for await (const _ of stream);
    return 'answered'
  } catch (error) {
    const { code, message } = ServeError.from(error)
    return `${code} ${message}`
  }
}

await t.test('errors and envelopes name a step as the rules do', async (t) => {
  const { model, waiting } = slowModel()
  const { router, envelopes } = await scriptedRouter({
    models: { slow: model },
    ensembles: { E: one },
    beyond: { E: NAMED },
  })
  const stream = responsesTo(router.resolve('E', ''), request('IN'), quiet)
  const failed = (async () => {
    for await (const _ of stream);
  })()
  await settle()
  t.equal(envelopes[0]?.step, 'only')
  waiting[0]?.fail(new ServeError('ENGINE_FAILED', 'it broke'))
  await t.rejects(failed, {
    code: 'INTERNAL',
    details: { step: 'only', model: 'slow', ensemble: 'E' },
  })
})

await t.test('the ensemble’s timeout ends a request, with its name in the error', async (t) => {
  const clock = createManualClock()
  const { model, waiting } = slowModel()
  const { router, envelopes } = await scriptedRouter({
    models: { slow: model },
    ensembles: { inner: one, E: outer },
    beyond: { inner: { ...NAMED, timeoutMs: 500 } },
    clock,
  })
  for (const [name, prefix] of [
    ['inner', "in ensemble 'inner', "],
    ['E', "in ensemble 'E', in ensemble 'inner', "],
  ] as const) {
    const ended = outcome(responsesTo(router.resolve(name, ''), request('IN'), quiet))
    await settle()
    t.equal(envelopes.at(-1)?.remainingMs, 500)
    clock.advance(500)
    t.equal(await ended, `DEADLINE_EXCEEDED ${prefix}the ensemble's timeout of 500 ms exceeded`)
    t.equal(clock.pending, 0)
  }
  t.equal(waiting.length, 2)
  await settle()
  t.equal(router.memory.count, 0)
})

await t.test('of deadline and timeout the sooner ends a request', async (t) => {
  const clock = createManualClock()
  const { model } = slowModel()
  const { router, envelopes } = await scriptedRouter({
    models: { slow: model },
    ensembles: { E: one },
    beyond: { E: { ...NAMED, timeoutMs: 500 } },
    clock,
  })
  for (const [remainingMs, sooner, name] of [
    [200, 200, 'deadline'],
    [500, 500, 'deadline'],
    [900, 500, "the ensemble's timeout"],
  ] as const) {
    const scope = openCallScope({ clock, remainingMs })
    const ended = outcome(responsesTo(router.resolve('E', ''), request('IN'), scope.context))
    await settle()
    t.equal(envelopes.at(-1)?.remainingMs, sooner)
    clock.advance(sooner)
    t.equal(await ended, `DEADLINE_EXCEEDED in ensemble 'E', ${name} of ${sooner} ms exceeded`)
    scope.close()
    t.equal(clock.pending, 0)
  }
})

await t.test(
  'a step that is first to see that the time is over does not change the error',
  async (t) => {
    const clock = createManualClock()
    const { model, waiting } = slowModel()
    const { router } = await scriptedRouter({
      models: { slow: model },
      ensembles: { E: one },
      beyond: { E: { ...NAMED, timeoutMs: 500 } },
      clock,
    })
    const over = new ServeError('DEADLINE_EXCEEDED', 'deadline of 499 ms exceeded')
    const ended = outcome(responsesTo(router.resolve('E', ''), request('IN'), quiet))
    await settle()
    clock.advance(499.5)
    waiting[0]?.fail(over)
    await settle()
    clock.advance(0.5)
    t.match(await ended, "the ensemble's timeout of 500 ms exceeded")
    const other = outcome(responsesTo(router.resolve('E', ''), request('IN'), quiet))
    await settle()
    clock.advance(100)
    waiting[1]?.fail(over)
    t.match(await other, 'deadline of 499 ms exceeded', 'it was not the ensemble’s time')
  },
)

await t.test('requests beyond the bound are refused at once', async (t) => {
  const { model, waiting } = slowModel()
  const { router } = await scriptedRouter({
    models: { slow: model },
    ensembles: { inner: one, E: outer },
    beyond: { inner: { ...NAMED, maxInFlightRequests: 2 } },
  })
  const inner = () => outcome(responsesTo(router.resolve('inner', ''), request('IN'), quiet))
  const through = () => outcome(responsesTo(router.resolve('E', ''), request('IN'), quiet))
  const text = "ensemble 'inner' is overloaded: 2 requests are in flight, the bound is 2"
  const first = inner()
  const second = through()
  await settle()
  t.equal(await inner(), `RESOURCE_EXHAUSTED ${text}`)
  t.equal(await through(), `RESOURCE_EXHAUSTED in ensemble 'E', ${text}`)
  const [pending] = await router.statistics('inner', '')
  t.equal(pending?.fail.count, 0n, 'what was refused is not counted, as in Triton')
  waiting[0]?.answer()
  t.equal(await first, 'answered')
  const third = inner()
  await settle()
  for (const one of waiting) one.answer()
  t.same(await Promise.all([second, third]), ['answered', 'answered'])
})

const GONE = new ServeError('CANCELLED', 'the client went away')
const ENDINGS = {
  answer: 'answered',
  fail: 'INTERNAL',
  cancel: 'CANCELLED',
  timeout: 'DEADLINE_EXCEEDED',
  malformed: 'INVALID_ARGUMENT',
  gone: 'CANCELLED',
} as const
type Ending = keyof typeof ENDINGS

await t.test('whatever ends a request gives its place back once', async (t) => {
  const ending = fc.constantFrom<Ending>('answer', 'fail', 'cancel', 'timeout', 'malformed', 'gone')
  await t.resolves(
    fc.assert(
      fc.asyncProperty(fc.array(ending, { minLength: 1, maxLength: 8 }), async (endings) => {
        const clock = createManualClock()
        const { model, waiting } = slowModel()
        const { router } = await scriptedRouter({
          models: { slow: model },
          ensembles: { E: one },
          beyond: { E: { ...NAMED, maxInFlightRequests: 1, timeoutMs: 1000 } },
          clock,
        })
        const infer = (asked: InferRequest, context: CallContext): Promise<string> =>
          outcome(responsesTo(router.resolve('E', ''), asked, context))
        for (const how of endings) {
          const client = openCallScope({ clock })
          if (how === 'gone') client.cancel(GONE)
          const asked = how === 'malformed' ? { ...request('IN'), inputs: [] } : request('IN')
          const ended = infer(asked, client.context)
          await settle()
          if (how !== 'malformed' && how !== 'gone')
            deepStrictEqual((await infer(request('IN'), quiet)).split(' ')[0], 'RESOURCE_EXHAUSTED')
          const ways: Partial<Record<Ending, () => void>> = {
            answer: () => waiting.at(-1)?.answer(),
            fail: () => waiting.at(-1)?.fail(new ServeError('ENGINE_FAILED', 'it broke')),
            cancel: () => client.cancel(GONE),
            timeout: () => clock.advance(1000),
          }
          ways[how]?.()
          deepStrictEqual((await ended).split(' ')[0], ENDINGS[how])
          client.close()
        }
        await settle()
        deepStrictEqual([router.memory.count, clock.pending], [0, 0])
      }),
      { numRuns: 60 },
    ),
  )
})

interface TraceEvent {
  readonly id: number
  readonly model_name?: string
  readonly parent_id?: number
  readonly timestamps?: readonly { readonly name: string }[]
  readonly activity?: string
}

/** A router whose requests are traced, and what is written of each. */
async function tracedRouter(words: readonly string[], o: Parameters<typeof scriptedRouter>[0]) {
  const { router } = await scriptedRouter(o)
  const { values } = parseFlags(TRACE_FLAGS, ['--trace-file=x', '--trace-rate=1', ...words])
  const trace = readTraceFlags(values)
  if (trace.mode !== 'triton') throw new Error('wrong mode')
  const { settings } = trace
  const files: (readonly TraceEvent[])[] = []
  const write = (events: readonly string[]): void => {
    files.push(events.map((event): TraceEvent => JSON.parse(event)))
  }
  const clock = systemClock
  const observer = traceRequests({ settings, file: { write }, clock })
  const requests = new ClientRequests({ protocol: 'http', clock, observer })
  const infer = async (name: string, values = [1]): Promise<readonly TraceEvent[]> => {
    await outcome(
      responsesTo(requests.open(undefined).resolve(router, name, ''), request('IN', values), quiet),
    )
    return files.shift() ?? []
  }
  return { infer, settings, files }
}

/** `id name parent` of each trace, in the order of the file. */
function tracesOf(events: readonly TraceEvent[]): readonly string[] {
  return events.flatMap(({ id, model_name, parent_id }) =>
    model_name === undefined ? [] : `${id} ${model_name} ${parent_id ?? '-'}`,
  )
}

/** Joins the words of the events that one trace has. */
function wordsOf(events: readonly TraceEvent[], id: number): string {
  const own = events.filter((event) => event.id === id)
  return own.flatMap((e) => e.timestamps?.[0]?.name ?? e.activity ?? []).join(' ')
}

const plusOne: ScriptedModel = {
  config: oneToOne,
  run: (inputs) => {
    const values = [...(inputs.get('X') ?? [])]
    if (values[0] === 99) throw new ServeError('ENGINE_FAILED', 'it broke')
    const more = values.map((x) => x + 1)
    return new Map([['Y', floats('Y', more)]])
  },
}

function many(count: number, values: readonly number[]): ScriptedModel {
  return {
    config: `${oneToOne} model_transaction_policy { decoupled: true }`,
    stream: async (sink) => {
      for (let index = 0; index < count; index += 1) {
        const outputs = [floats('Y', values)]
        sink.send({ index, final: index === count - 1, outputs, parameters: new Map() })
        await sink.ready()
      }
    },
  }
}

const COMPUTED = 'COMPUTE_START COMPUTE_INPUT_END COMPUTE_OUTPUT_START COMPUTE_END'

await t.test('the steps of a traced ensemble have traces as in tritonserver', async (t) => {
  const { infer, settings, files } = await tracedRouter(
    ['--trace-level=TIMESTAMPS', '--trace-level=TENSORS', '--trace-count=4'],
    {
      models: { one: plusOne, many: many(3, [1]) },
      ensembles: { E: chain('one', 'one'), stream: chain('many', 'one') },
    },
  )
  const chained = await infer('E')
  t.same(tracesOf(chained), ['3 one 1', '2 one 1', '1 E -'])
  const start = 'REQUEST_START QUEUE_START TENSOR_QUEUE_INPUT'
  t.equal(wordsOf(chained, 3), `${start} TENSOR_BACKEND_OUTPUT ${COMPUTED} REQUEST_END`)
  t.notMatch(wordsOf(chained, 1), /COMPUTE_START/)
  t.match(chained, [{ id: 3, model_version: 1, request_id: 'r' }])
  t.match(JSON.stringify(chained), /"id":3,"activity":"TENSOR_QUEUE_INPUT".*"data":"2"/)

  const failed = await infer('E', [99])
  t.same(tracesOf(failed), ['5 one 4', '4 E -'])
  t.equal(wordsOf(failed, 5), `${start} ${COMPUTED} REQUEST_END`)
  t.match(wordsOf(failed, 4), /TENSOR_QUEUE_INPUT INFER_RESPONSE_COMPLETE REQUEST_END/)

  const streamed = await infer('stream')
  t.same(tracesOf(streamed), ['10 one 6', '9 one 6', '8 one 6', '7 many 6', '6 stream -'])
  t.equal(wordsOf(streamed, 7).match(/TENSOR_BACKEND_OUTPUT/g)?.length, 3)
  t.equal(settings.valuesOf('').count, 1, 'steps are not counted')

  t.equal((await infer('E')).at(-1)?.id, 11)
  t.same(await infer('E'), [])
  t.same(files, [])
})

await t.test('those of a nested ensemble name it, whatever bounds its time', async (t) => {
  const models = { one: plusOne }
  const ensembles = { inner: chain('one', 'one'), E: outer }
  const rules = { inner: { stepNames: ['a', 'b'], dependsOn: [[], []], timeoutMs: 60_000 } }
  const o = { models, ensembles, rules }
  const { infer } = await tracedRouter(['--trace-level=TIMESTAMPS'], o)
  const events = await infer('E')
  t.same(tracesOf(events), ['4 one 2', '3 one 2', '2 inner 1', '1 E -'])
  t.equal(wordsOf(events, 2), 'REQUEST_START QUEUE_START REQUEST_END')
  t.equal(wordsOf(events, 3), `REQUEST_START QUEUE_START ${COMPUTED} REQUEST_END`)
  const direct = await infer('inner')
  t.same(tracesOf(direct), ['7 one 5', '6 one 5', '5 inner -'])
})

await t.test('the traces of the steps of a request are bounded together', async (t) => {
  const values = Array.from({ length: 4096 }, () => 0.123)
  const { infer } = await tracedRouter(['--trace-level=TENSORS', '--trace-level=TIMESTAMPS'], {
    models: {
      one: { ...plusOne, run: () => new Map([['Y', floats('Y', [1])]]) },
      many: many(200, values),
    },
    ensembles: { stream: chain('many', 'one') },
  })
  const events = await infer('stream')
  t.ok(JSON.stringify(events).length < 4.5 * 1024 * 1024)
  t.ok(tracesOf(events).length < 150, `${tracesOf(events).length} traces`)
  t.match(wordsOf(events, 1), /HTTP_SEND_END$/, 'that of the request itself is whole')
})

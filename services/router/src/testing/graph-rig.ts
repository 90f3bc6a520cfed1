import { systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { observeModel } from '@tutti/serving'
import {
  ServerMetrics,
  type StepSpan,
  StepSpans,
  TraceSettings,
  traceRequests,
} from '@tutti/telemetry'
import type { RequestObserver } from '@tutti/tensor'
import { responsesTo } from '@tutti/tensor/testing'
import { type RecordedSpan, recordedSpans } from './recorded-spans.ts'
import { collect, floats, oneToOne, quiet, request } from './requests.ts'
import { scriptedRouter } from './scripted-router.ts'

/** An event in a trace file. */
export interface TraceEvent {
  readonly id: number
  readonly model_name?: string
  readonly timestamps?: readonly { readonly name: string }[]
}

const inputMap = { X: 'IN' }
const step = (name: string, model: string, more: object = {}) => {
  return { name, modelRef: { name: model }, inputMap, ...more }
}
const ensemble = (steps: readonly object[], from: string, shape = [-1]) => {
  return {
    inputs: [{ name: 'IN', datatype: 'FP32', shape }],
    steps,
    outputs: [{ name: 'OUT', datatype: 'FP32', shape, from }],
  }
}
const forEach = { items: { X: 'IN' }, maxItems: 100, maxParallel: 1 }
const Y = { datatype: 'FP32', value: [-1] }
/** The condition of the step `large`. */
export const WHEN = 'tensors["small.Y"][0] < 0.0'
const STEPS = {
  conditions: [
    step('small', 'ok'),
    step('large', 'ok', { when: WHEN }),
    step('after', 'ok', { inputMap: { X: 'large.Y' } }),
    step('last', 'ok', { inputMap: undefined, firstOf: { X: ['after.Y', 'small.Y'] } }),
  ],
  items: [
    step('read', 'pairs', {
      inputMap: undefined,
      forEach: { ...forEach, onItemError: { default: { Y } } },
    }),
  ],
  single: [step('read', 'row', { inputMap: undefined, forEach: { ...forEach, maxItems: 1000 } })],
  broken: [step('read', 'pairs', { inputMap: undefined, forEach })],
  nested: [
    { name: 'each', ensembleRef: { name: 'inner' }, forEach: { ...forEach, items: { IN: 'IN' } } },
  ],
  again: [
    {
      name: 'again',
      ensembleRef: { name: 'inner' },
      inputMap: { IN: 'IN' },
      loop: { carry: { IN: 'again.OUT' }, maxIterations: 3 },
    },
  ],
  retried: [
    step('flaky', 'flaky', {
      mayRunTwice: true,
      retry: { maxRetries: 2, retryOn: ['INTERNAL'], backoff: '1ms' },
    }),
  ],
  fallback: [
    step('first', 'fails', { onError: { fallback: { modelRef: { name: 'ok' } } } }),
    step('second', 'ok', { inputMap: { X: 'first.Y' } }),
  ],
  behind: [
    step('before', 'ok'),
    step('first', 'fails', {
      inputMap: { X: 'before.Y' },
      onError: { fallback: { modelRef: { name: 'ok' } } },
    }),
  ],
  pages: [
    {
      name: 'page',
      ensembleRef: { name: 'nested' },
      forEach: { ...forEach, items: { IN: 'IN' } },
    },
  ],
  default: [step('first', 'fails', { onError: { default: { Y } } })],
  slow: [step('first', 'hangs', { timeout: '5ms', onError: { default: { Y } } })],
}
type Name = keyof typeof STEPS
const NAMES = [
  'conditions',
  'items',
  'single',
  'broken',
  'nested',
  'again',
  'retried',
  'fallback',
  'behind',
  'pages',
  'default',
  'slow',
] as const
/** Dimensions beyond the first one of the inputs of each that has more. */
const MORE: Partial<Record<Name, readonly number[]>> = {
  items: [1],
  single: [1],
  broken: [1],
  nested: [1],
  pages: [1, 1],
}
const MAKERS: Partial<Record<Name, string>> = {
  conditions: 'last.Y',
  nested: 'each.OUT',
  pages: 'page.OUT',
  again: 'again.OUT',
}

/** A model of batches of two. */
const pairs = `max_batch_size: 2
  platform: "onnxruntime_onnx"
  input { name: "X" data_type: TYPE_FP32 dims: 1 }
  output { name: "Y" data_type: TYPE_FP32 dims: 1 }`

const echo = (inputs: ReadonlyMap<string, Float32Array>) => {
  const values = [...(inputs.get('X') ?? [])]
  if (values.includes(13)) throw new ServeError('ENGINE_FAILED', 'it is 13')
  return new Map([['Y', floats('Y', values)]])
}

const fails = () => {
  throw new ServeError('ENGINE_FAILED', 'always')
}

/** Shape of the input and of the output. */
const shapeOf = (name: Name) => (name === 'pages' ? [-1, -1, 1] : [-1, ...(MORE[name] ?? [])])

const made = (name: Name) => MAKERS[name] ?? `${STEPS[name].at(-1)?.name}.Y`

/** Opens a router with ensembles of each construct, and tells what their requests did. */
export async function openGraphs() {
  const metrics = new ServerMetrics()
  const { spans: traced, tracing } = recordedSpans()
  let attempts = 0
  const { router } = await scriptedRouter({
    metrics,
    tracing,
    models: {
      ok: { config: oneToOne, run: echo },
      fails: { config: oneToOne, run: fails },
      hangs: { config: oneToOne, run: () => new Promise(() => {}) },
      flaky: {
        config: oneToOne,
        run: (inputs) => {
          attempts += 1
          return attempts < 3 ? fails() : echo(inputs)
        },
      },
      row: { config: oneToOne, run: echo },
      pairs: {
        config: pairs,
        run: (inputs) => {
          const [y] = echo(inputs).values()
          const rows = inputs.get('X')?.length ?? 0
          return new Map(y && [['Y', { ...y, shape: [rows, 1] }]])
        },
      },
    },
    manifests: {
      inner: {
        ...ensemble([step('one', 'ok'), step('two', 'ok', { inputMap: { X: 'one.Y' } })], 'two.Y'),
        timeout: '30s',
      },
      ...Object.fromEntries(
        NAMES.map((name) => [name, ensemble(STEPS[name], made(name), shapeOf(name))]),
      ),
    },
  })
  const observed = async (
    name: Name,
    values: readonly number[],
    observer: RequestObserver,
  ): Promise<void> => {
    const client = { protocol: 'grpc', isOutside: false, arrivedAt: 0 } as const
    const model = observeModel(router.resolve(name, ''), observer, { clock: systemClock, client })
    const shape = [values.length, ...(MORE[name] ?? [])]
    const asked = request('IN', values, { inputs: [floats('IN', values, shape)] })
    await collect(responsesTo(model, asked, quiet)).catch(() => {})
  }
  /** Asks, and tells the spans of the steps. */
  const ask = async (name: Name, values: readonly number[]): Promise<readonly StepSpan[]> => {
    const spans = new StepSpans(systemClock)
    await observed(name, values, spans)
    return spans.read().spans.slice(1)
  }
  /** Asks, and tells the events that a trace file in Triton's form gets. */
  const file = async (name: Name, values: readonly number[]): Promise<readonly TraceEvent[]> => {
    const written: TraceEvent[] = []
    const levels = { level: ['TIMESTAMPS'], rate: 1, count: -1, logFrequency: 0 } as const
    const settings = new TraceSettings({ values: levels, file: 'x' })
    const write = (events: readonly string[]): void => {
      for (const event of events) written.push(JSON.parse(event))
    }
    await observed(name, values, traceRequests({ settings, file: { write }, clock: systemClock }))
    return written
  }
  /** Returns the count of each metric of the steps that is not 0. */
  const counts = async () => {
    const text = await metrics.render()
    const lines = text.matchAll(
      /^tutti_step_(\w+)_total\{ensemble="(\w+)",step="(\w+)".*\} (\d+)$/gm,
    )
    return [...lines].flatMap(([, what, of, which, count]) =>
      count === '0' ? [] : [`${of}.${which} ${what} ${count}`],
    )
  }
  /** Asks, and tells the spans for a collector. */
  const trace = async (name: Name, values: readonly number[]): Promise<readonly RecordedSpan[]> => {
    const before = traced.length
    await ask(name, values)
    return traced.slice(before)
  }
  return { ask, counts, file, trace }
}

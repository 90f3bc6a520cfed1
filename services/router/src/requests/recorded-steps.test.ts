import { systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { ServerMetrics, type StepSpan, StepSpans } from '@tutti/telemetry'
import { responsesTo } from '@tutti/tensor/testing'
import t from 'tap'
import {
  collect,
  floats,
  oneToOne,
  quiet,
  type RecordedSpan,
  recordedSpans,
  request,
  scriptedRouter,
} from '../testing/index.ts'

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
const WHEN = 'tensors["small.Y"][0] < 0.0'
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
  'default',
  'slow',
] as const
/** Those whose inputs have rows. */
const MAPS: readonly string[] = ['items', 'single', 'broken', 'nested']
const MAKERS: Partial<Record<Name, string>> = {
  conditions: 'last.Y',
  nested: 'each.OUT',
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

const made = (name: Name) => MAKERS[name] ?? `${STEPS[name].at(-1)?.name}.Y`

async function setup() {
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
      inner: ensemble(
        [step('one', 'ok'), step('two', 'ok', { inputMap: { X: 'one.Y' } })],
        'two.Y',
      ),
      ...Object.fromEntries(
        NAMES.map((name) => [
          name,
          ensemble(STEPS[name], made(name), MAPS.includes(name) ? [-1, 1] : [-1]),
        ]),
      ),
    },
  })
  /** Asks, and tells the spans of the steps. */
  const ask = async (name: Name, values: readonly number[]): Promise<readonly StepSpan[]> => {
    const spans = new StepSpans(systemClock)
    const watch = spans.began({ name, version: 1, isEnsemble: true })
    const context = { ...quiet, ...(watch.steps && { observer: watch.steps }) }
    const shape = MAPS.includes(name) ? [values.length, 1] : [values.length]
    const inputs = [floats('IN', values, shape)]
    const asked = request('IN', values, { inputs })
    await collect(responsesTo(router.resolve(name, ''), asked, context)).catch(() => {})
    watch.ended?.({ elapsedNs: 0, batchSize: 0 })
    return spans.read().spans.slice(1)
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
  return { ask, counts, trace }
}

await t.test('spans say what was done around each step, and metrics count it', async (t) => {
  const { ask, counts } = await setup()
  const rows = async (...asked: Parameters<typeof ask>) => {
    const spans = await ask(...asked)
    return spans.map(
      ({ step: name, startMs, endMs, queueMs, computeMs, depth, model, ...rest }) => {
        t.ok(startMs <= endMs && queueMs + computeMs >= 0 && depth > 0 && model !== '')
        return [name, rest]
      },
    )
  }
  const plain = { waitsFor: [], reason: '' }
  t.same(await rows('conditions', [1]), [
    ['small', plain],
    [
      'large',
      {
        waitsFor: ['small'],
        reason: '',
        passed: 'skipped',
        why: WHEN,
      },
    ],
    ['after', { waitsFor: ['large'], reason: '', passed: 'skipped', why: "input 'X' is absent" }],
    ['last', { waitsFor: ['after', 'small'], reason: '' }],
  ])
  t.same(await rows('items', [1, 13, 3, 4, 5]), [
    ['read', { ...plain, counts: { items: 5, itemCalls: 3, failedItems: 2 } }],
  ])
  t.same(await rows('broken', [1, 2, 13, 4, 5]), [
    [
      'read',
      {
        waitsFor: [],
        reason: 'ENGINE_FAILED',
        counts: { items: 5, itemCalls: 2, failedItems: 2 },
      },
    ],
  ])
  t.same(await rows('retried', [1]), [['flaky', { ...plain, counts: { retried: 2 } }]])
  const failed = { waitsFor: [], reason: 'ENGINE_FAILED' }
  t.same(await rows('fallback', [1]), [
    ['first', failed],
    ['first', { waitsFor: ['first'], reason: '', isFallback: true }],
    ['second', { waitsFor: ['first'], reason: '' }],
  ])
  const defaulted = ['first', { waitsFor: ['first'], reason: '', passed: 'defaulted' }]
  t.same(await rows('default', [1]), [['first', failed], defaulted])
  t.same(await rows('slow', [1]), [['first', { ...failed, reason: 'STEP_TIMEOUT' }], defaulted])
  t.same(
    new Set(await counts()),
    new Set([
      'conditions.large skips 1',
      'conditions.after skips 1',
      'items.read items 5',
      'items.read item_calls 3',
      'items.read failed_items 2',
      'broken.read items 5',
      'broken.read item_calls 2',
      'broken.read failed_items 2',
      'retried.flaky retries 2',
      'fallback.first fallbacks 1',
      'default.first defaults 1',
      'slow.first timeouts 1',
      'slow.first defaults 1',
    ]),
  )
})

const names = (spans: readonly StepSpan[]) =>
  spans.map(({ depth, step: name, within = '' }) => `${'-'.repeat(depth)}${name}${within}`)

await t.test('steps of an ensemble within say for which item or iteration they ran', async (t) => {
  const { ask, counts } = await setup()
  const nested = await ask('nested', [1, 2])
  t.same(names(nested), ['-each', '--one[0]', '--two[0]', '--one[1]', '--two[1]'])
  t.same(nested[0]?.counts, { items: 2, itemCalls: 2, failedItems: 0 })
  const again = await ask('again', [1])
  t.same(names(again).slice(-2), ['--one[3]', '--two[3]'])
  t.same(again[0]?.counts, { iterations: 3 })
  t.ok((await counts()).includes('again.again iterations 3'))
})

/** Shows a span in a line: its parent, its name, and what it says of items and attempts. */
const line = ({ name, parent, attributes, reason }: RecordedSpan): string => {
  const shown = Object.entries(attributes).filter(
    ([key]) => !/model|version|replica|ensemble|step$/.test(key),
  )
  const said = shown.map(([key, value]) => `${key.replace('tutti.', '')}=${value}`)
  return [`${parent} > ${name}`, ...said, reason].join(' ').trim()
}

await t.test('a collector gets a span of each attempt, and of what repeats', async (t) => {
  const { trace } = await setup()
  const lines = async (...asked: Parameters<typeof trace>) => {
    const spans = await trace(...asked)
    t.ok(spans.every(({ hasEnded }) => hasEnded))
    return spans.map(line)
  }
  t.same(await lines('items', [1, 13, 3]), [
    '> infer items',
    'infer items > for each read items=3 item_calls=2 failed_items=2',
    'for each read > execute pairs attempt=1 item=0..1 ENGINE_FAILED',
    'for each read > execute pairs attempt=1 item=2',
  ])
  t.same(await lines('nested', [5]), [
    '> infer nested',
    'infer nested > for each each items=1 item_calls=1 failed_items=0',
    'for each each > item each item=0',
    'item each > execute ok attempt=1 within=[0]',
    'item each > execute ok attempt=1 within=[0]',
  ])
  t.same((await lines('again', [1])).slice(0, 3), [
    '> infer again',
    'infer again > loop again iterations=3',
    'loop again > iteration again item=1',
  ])
  t.same(await lines('retried', [1]), [
    '> infer retried',
    'infer retried > execute flaky attempt=1 ENGINE_FAILED',
    'infer retried > execute flaky attempt=2 ENGINE_FAILED',
    'infer retried > execute flaky attempt=3',
  ])
  t.same(await lines('fallback', [1]), [
    '> infer fallback',
    'infer fallback > execute fails attempt=1 ENGINE_FAILED',
    'infer fallback > execute ok attempt=2 fallback=true',
    'infer fallback > execute ok attempt=1',
  ])
  t.same(await lines('default', [1]), [
    '> infer default',
    'infer default > execute fails attempt=1 ENGINE_FAILED',
    'infer default > default first',
  ])
})

await t.test('a step that is skipped is an event of its ensemble', async (t) => {
  const { trace } = await setup()
  const [whole] = await trace('conditions', [1])
  const ensemble = { 'tutti.ensemble': 'conditions' }
  t.same(whole?.events, [
    ['step skipped', { ...ensemble, 'tutti.step': 'large', 'tutti.why': WHEN }],
    ['step skipped', { ...ensemble, 'tutti.step': 'after', 'tutti.why': "input 'X' is absent" }],
  ])
})

await t.test('spans of a request are bounded, and the others counted', async (t) => {
  const { trace } = await setup()
  const many = Array.from({ length: 300 }, () => 1)
  const spans = await trace('single', many)
  t.equal(spans.length, 256)
  t.match(spans[0], { name: 'infer single', attributes: { 'tutti.spans_left_out': 46 } })
  t.match(spans[1], { attributes: { 'tutti.items': 300, 'tutti.item_calls': 300 } })
  t.ok(spans.every(({ hasEnded }) => hasEnded))
  t.match((await trace('single', [1]))[0]?.attributes, { 'tutti.spans_left_out': undefined })
})

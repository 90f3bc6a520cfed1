import { ServeError } from '@tutti/errors'
import t from 'tap'
import { createStepRig } from '../testing/call-rig.ts'
import { openGraphs, type TraceEvent, WHEN } from '../testing/graph-rig.ts'
import { type RecordedSpan, recordedSpans } from '../testing/index.ts'

/** Shows a span in a line: its parent, its name, and what it says of items and attempts. */
const line = ({ name, parent, attributes, reason }: RecordedSpan): string => {
  const shown = Object.entries(attributes).filter(
    ([key]) => !/model|version|replica|ensemble|step$/.test(key),
  )
  const said = shown.map(([key, value]) => `${key.replace('tutti.', '')}=${value}`)
  return [`${parent} > ${name}`, ...said, reason].join(' ').trim()
}

await t.test('a collector gets a span of each attempt, and of what repeats', async (t) => {
  const { trace } = await openGraphs()
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

await t.test('the attempt of a hedge says that it is one', async (t) => {
  const { spans, tracing } = recordedSpans()
  const hedge = { afterMs: 50, maxPercent: 100 }
  const rig = createStepRig({ hedge, mayRunTwice: true }, { tracing })
  rig.ask()
  rig.clock.advance(50)
  rig.attempts[1]?.answer(1)
  rig.attempts[0]?.fail(new ServeError('CANCELLED', 'lost'), 'maybe')
  const lines = spans.slice(1).map(line)
  t.same(lines, [
    'infer e > execute m attempt=1 CANCELLED',
    'infer e > execute m attempt=2 hedge=true',
  ])
})

await t.test('a step that is skipped is an event of its ensemble', async (t) => {
  const { trace } = await openGraphs()
  const [whole] = await trace('conditions', [1])
  const ensemble = { 'tutti.ensemble': 'conditions' }
  t.same(whole?.events, [
    ['step skipped', { ...ensemble, 'tutti.step': 'large', 'tutti.why': WHEN }],
    ['step skipped', { ...ensemble, 'tutti.step': 'after', 'tutti.why': "input 'X' is absent" }],
  ])
})

await t.test('spans of a request are bounded, and the others counted', async (t) => {
  const { trace } = await openGraphs()
  const many = Array.from({ length: 300 }, () => 1)
  const spans = await trace('single', many)
  t.equal(spans.length, 256)
  t.match(spans[0], { name: 'infer single', attributes: { 'tutti.spans_left_out': 46 } })
  t.match(spans[1], { attributes: { 'tutti.items': 300, 'tutti.item_calls': 300 } })
  t.ok(spans.every(({ hasEnded }) => hasEnded))
  t.match((await trace('single', [1]))[0]?.attributes, { 'tutti.spans_left_out': undefined })
})

/** Shows what a trace file has of each execution: its model, what else is known of it, and its events. */
function executionsIn(events: readonly TraceEvent[]): readonly string[] {
  const told = new Map<number, string[]>()
  for (const { id, timestamps = [], model_name: name, ...rest } of events) {
    const words = told.get(id) ?? []
    told.set(id, words)
    if (name !== undefined) words.push(name, ...Object.keys(rest))
    words.push(...timestamps.map((one) => one.name))
  }
  return [...told.values()].map((words) => words.join(' '))
}

await t.test("a trace file has Triton's events alone, of what was executed", async (t) => {
  const { file } = await openGraphs()
  const computed = 'COMPUTE_START COMPUTE_INPUT_END COMPUTE_OUTPUT_START COMPUTE_END'
  const began = 'model_version request_id parent_id REQUEST_START QUEUE_START'
  const ran = (name: string) => `${name} ${began} ${computed} REQUEST_END`
  const children = async (...asked: Parameters<typeof file>) =>
    executionsIn(await file(...asked)).slice(0, -1)
  t.same(await children('conditions', [1]), [ran('ok'), ran('ok')])
  t.same(await children('items', [1, 2, 3]), [ran('pairs')])
  t.same(await children('fallback', [1]), [ran('ok'), ran('ok'), ran('fails')])
  t.same(await children('default', [1]), [ran('fails')])
  t.same(await children('slow', [1]), [`hangs ${began} REQUEST_END`])
})

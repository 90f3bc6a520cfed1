import t from 'tap'
import type { StepSpan } from '../api/step-span.ts'
import { criticalPath } from './critical-path.ts'
import { describeSpan } from './describe-span.ts'
import { waterfallRows } from './waterfall-rows.ts'

const SPAN: StepSpan = {
  step: 'a',
  model: 'm',
  depth: 1,
  waitsFor: [],
  startMs: 0,
  endMs: 1,
  queueMs: 0,
  computeMs: 0,
  reason: '',
}
const path = (...spans: readonly StepSpan[]) => criticalPath(spans).map(({ step }) => step)
const span = (more: Partial<StepSpan>): StepSpan => ({ ...SPAN, ...more })

await t.test('what was done around a step is said in a few words', async (t) => {
  const cases: readonly (readonly [Partial<StepSpan>, readonly string[]])[] = [
    [{}, []],
    [{ counts: {} }, []],
    [{ passed: 'skipped', why: 'x > 1' }, ['skipped: x > 1']],
    [{ passed: 'skipped' }, ['skipped']],
    [{ passed: 'defaulted' }, ['answered with its default']],
    [{ isFallback: true, counts: { retried: 1 } }, ['fallback m', '1 retry']],
    [{ counts: { items: 0, itemCalls: 0, failedItems: 0 } }, ['0 items in 0 calls']],
    [{ counts: { items: 12, itemCalls: 3, failedItems: 1 } }, ['12 items in 3 calls, 1 failed']],
    [
      {
        counts: { items: 12, itemCalls: 3, failedItems: 8 },
        itemReason: 'ENGINE_FAILED',
      },
      ['12 items in 3 calls, 8 failed: ENGINE_FAILED'],
    ],
    [{ counts: { items: 1, itemCalls: 1, failedItems: 0 } }, ['1 item in 1 call']],
    [
      { counts: { iterations: 5, retried: 2, retryRefused: 1 } },
      ['5 iterations', '2 retries', 'no budget for a further retry'],
    ],
    [{ counts: { hedged: 1 } }, ['1 hedge']],
    [{ counts: { hedged: 2, hedgeWon: 1 } }, ['2 hedges, 1 won']],
  ]
  for (const [more, phrases] of cases) t.same(describeSpan(span(more)), phrases)
})

await t.test('rows name the item, and a step that did not run has no bar', async (t) => {
  const spans = [
    span({ step: '', depth: 0, endMs: 4 }),
    span({ passed: 'skipped', why: 'x', startMs: 2, endMs: 2 }),
    span({ step: 'b', depth: 2, within: '[3]' }),
  ]
  t.same(
    waterfallRows({ spans, leftOut: 0 }).map(({ label, isPassed, notes }) => {
      return [label, isPassed, notes]
    }),
    [
      ['request', false, []],
      ['a', true, ['skipped: x']],
      ['b[3]', false, []],
    ],
  )
})

await t.test('the critical path goes through steps that were skipped or failed', async (t) => {
  const last = span({ step: 'c', waitsFor: ['b'], startMs: 3, endMs: 4 })
  const skipped = span({ step: 'b', waitsFor: ['a'], startMs: 1, endMs: 1, passed: 'skipped' })
  t.same(path(span({}), skipped, last), ['c', 'a'])
  const failed = span({ step: 'b', waitsFor: ['a'], startMs: 1, endMs: 2, reason: 'ENGINE_FAILED' })
  const fallback = { ...failed, waitsFor: ['a', 'b'], startMs: 2, endMs: 3, isFallback: true }
  t.same(path(span({}), failed, fallback, last), ['c', 'b', 'b', 'a'])
  const defaulted = span({
    step: 'b',
    waitsFor: ['a', 'b'],
    startMs: 2,
    endMs: 2,
    passed: 'defaulted',
  })
  t.same(path(span({}), failed, defaulted, last), ['c', 'b', 'a'])
})

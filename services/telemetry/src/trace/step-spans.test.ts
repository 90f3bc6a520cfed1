import { createManualClock } from '@tutti/chassis/testing'
import { EMPTY_CONTEXT } from '@tutti/tensor'
import t from 'tap'
import { StepSpans } from './step-spans.ts'

const REQUEST = { context: EMPTY_CONTEXT, inputs: [], requestedOutputs: [] }
const END = { elapsedNs: 0, batchSize: 0 }
const ENSEMBLE = { name: 'e', version: 1, isEnsemble: true }
const step = (name: string) => ({ name: 'm', version: 1, isEnsemble: false, step: name })

/** A request that has begun. */
function begin() {
  const clock = createManualClock()
  const spans = new StepSpans(clock)
  const whole = spans.began(ENSEMBLE)
  if (whole.steps === undefined) throw new Error('no steps are observed')
  return { clock, spans, whole, steps: whole.steps }
}

await t.test('a step that is skipped has a span of no length', (t) => {
  const { clock, spans, steps } = begin()
  clock.advance(5)
  steps.passed?.(step('a'), 'skipped', `x < "${'y'.repeat(1000)}"`)
  clock.advance(5)
  const skipped = spans.read().spans[1]
  t.match(skipped, { step: 'a', passed: 'skipped', startMs: 5, endMs: 5, reason: '' })
  t.match(skipped?.why, /^x < "y{155}…$/)
  t.end()
})

await t.test('counts of an execution add up', (t) => {
  const { clock, spans, steps } = begin()
  const watch = steps.began(step('b'), REQUEST, {})
  for (const count of [1, 2]) watch?.counted?.('retried', count)
  watch?.counted?.('items', 0)
  clock.advance(10)
  const counted = spans.read().spans[1] ?? {}
  t.match(counted, { counts: { retried: 3, items: 0 }, endMs: 10 })
  t.notOk('passed' in counted)
  t.end()
})

await t.test('steps that are skipped count in the bound', (t) => {
  const { spans, whole, steps } = begin()
  for (let i = 0; i < 600; i += 1) steps.passed?.(step('a'), 'skipped', 'x')
  whole.ended?.(END)
  steps.passed?.(step('late'), 'defaulted', '')
  const recorded = spans.read()
  t.equal(recorded.spans.length, 500)
  t.equal(recorded.leftOut, 101)
  t.end()
})

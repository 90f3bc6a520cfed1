import type { Datatype } from '@tutti/tensor'
import { floats } from '@tutti/tensor/testing'
import t from 'tap'
import { compileCondition, holds } from './conditions.ts'

const CONDITION = compileCondition(
  'tensors["a"][0] < 0.5',
  new Map<string, Datatype>([['a', 'FP32']]),
)
const large = Array.from({ length: 65 }, () => 0)

await t.test('only the tensors that a condition names are read', (t) => {
  const parameters = new Map()
  const ask = (...tensors: Parameters<typeof holds>[1]['tensors']) =>
    holds(CONDITION, { step: 's', tensors, parameters })
  t.equal(ask(floats('a', [0.25]), floats('count', large)), true)
  t.equal(ask(floats('a', [0.75])), false)
  t.throws(() => ask(floats('a', large)), {
    reason: 'CONDITION_FAILED',
    message: /^the condition of step 's' has no value: tensors\["a"\] has the shape \[65\]/,
  })
  t.throws(() => ask(floats('count', [1])), { message: /the tensor "a" is absent/ })
  t.end()
})

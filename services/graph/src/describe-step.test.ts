import t from 'tap'
import { describeStep } from './describe-step.ts'
import type { GraphStep } from './graph.ts'

const STEP: GraphStep = {
  name: 'a',
  model: 'm',
  version: -1,
  inputs: [{ name: 'x', from: { kind: 'input', name: 'x' } }],
  outputs: [],
  after: [],
}

await t.test('a plain step has no words, and each rule of a step has some', (t) => {
  t.same(describeStep(STEP), [])
  const value = [1, 2, 3, 4, 5]
  const constant = { kind: 'constant', constant: { datatype: 'FP32', shape: [5], value } } as const
  const described = describeStep({
    ...STEP,
    when: 'tensors["x"][0] > 0.5',
    inputs: [...STEP.inputs, { name: 'k', from: constant }],
    parameters: { tier: 'gold' },
    forEach: { items: ['x'], maxItems: 64, maxParallel: 16, gather: 'Stack' },
    loop: { carry: [], reads: [], until: 'tensors["a.y"][0] < 1.0', maxIterations: 50 },
    call: { timeoutMs: 300 },
  })
  const builtin = { name: 'tokenize', options: { file: 'a.json', texts: Array(9).fill('many') } }
  t.same(describeStep({ ...STEP, model: 'encoder', builtin }), [
    'beside the files of encoder',
    'with file "a.json", texts ["many","many","many","many","many","man…',
  ])
  t.same(describeStep({ ...STEP, model: '/builtins', builtin: { name: 'cast', options: {} } }), [])
  t.same(described, [
    'only if tensors["x"][0] > 0.5',
    'k = FP32[5] 1, 2, 3, 4, …',
    'parameter tier = gold',
    'for each of x: at most 64 items, 16 calls at a time',
    'again until tensors["a.y"][0] < 1.0, at most 50 times',
    'timeout 300 ms',
  ])
  t.end()
})

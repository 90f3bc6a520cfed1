import t from 'tap'
import type { Step } from '../../api/model-detail.ts'
import { criticalPath } from './critical-path.ts'

function ports(tensors: readonly string[]) {
  return tensors.map((tensor) => ({ name: tensor, tensor }))
}

function step(name: string, inputs: readonly string[], outputs: readonly string[]): Step {
  return {
    name,
    model: name,
    version: -1,
    state: 'ready',
    inputs: ports(inputs),
    outputs: ports(outputs),
  }
}

function span(name: string, startMs: number, endMs: number, depth = 1) {
  return { step: name, model: name, depth, startMs, endMs, queueMs: 0, computeMs: 0, reason: '' }
}

const DIAMOND = [
  step('a', ['in'], ['x', 'y']),
  step('b', ['x'], ['p']),
  step('c', ['y'], ['q']),
  step('d', ['p', 'q'], ['out']),
]

function pathOf(...spans: Parameters<typeof criticalPath>[0]) {
  return criticalPath(spans, DIAMOND).map((one) => one.step)
}

await t.test('it is the chain that ended last, from its end', async (t) => {
  const ends = [span('', 0, 9, 0), span('a', 0, 1)]
  t.same(pathOf(...ends, span('b', 1, 5), span('c', 1, 3), span('d', 5, 9)), ['d', 'b', 'a'])
  t.same(pathOf(...ends, span('b', 1, 2), span('c', 1, 3), span('d', 3, 9)), ['d', 'c', 'a'])
})

await t.test('steps that ran beside it, or further down, are not on it', async (t) => {
  t.same(pathOf(span('a', 0, 1), span('b', 1, 5), span('c', 1, 3)), ['b', 'a'])
  t.same(pathOf(span('a', 0, 1), span('inner', 0, 8, 2)), ['a'])
  t.same(pathOf(), [])
})

await t.test('a step that ran twice is there as often as it was waited for', async (t) => {
  t.same(pathOf(span('a', 0, 1), span('b', 1, 2), span('b', 2, 4), span('d', 4, 5)), [
    'd',
    'b',
    'a',
  ])
})

import t from 'tap'
import { InstanceLines } from './instance-lines.ts'

const lasting = (computeInferNs: number) => ({
  computeInputNs: 0,
  computeInferNs,
  computeOutputNs: 0,
})

/** The depth after executions of these lengths, in microseconds. */
function depthAfter(lengthsUs: readonly number[], most = 64): number {
  const lines = new InstanceLines(1, most)
  for (const us of lengthsUs) lines.leave(lines.enter(), lasting(us * 1000))
  return lines.depth
}

await t.test('a line is as deep as half a millisecond of work', async (t) => {
  for (const [us, depth] of [
    [5, 64],
    [10, 50],
    [100, 5],
    [260, 1],
    [10_000, 1],
  ] as const) {
    t.equal(depthAfter([us]), depth, `${us} us`)
  }
  t.equal(depthAfter([]), 1, 'nothing is known')
  t.equal(depthAfter([0]), 64, 'a clock too coarse for the model')
  t.equal(depthAfter([5], 1), 1, 'an engine that takes one at a time')
})

await t.test('the mean follows a model that becomes slower or faster', async (t) => {
  const short = Array.from({ length: 40 }, () => 10)
  t.equal(depthAfter([...short, 2000]), 1, 'one long execution is enough')
  t.ok(depthAfter([20_000, ...short, ...short]) > 40, 'a first one that warms up is forgotten')
})

await t.test('the least busy instance is next, the first of equally busy ones', async (t) => {
  const lines = new InstanceLines(3, 2)
  t.equal(lines.idle, 3)
  t.equal(lines.enter(), 0)
  lines.leave(0, lasting(1))
  t.same(
    [0, 1, 2, 3, 4, 5].map(() => lines.enter()),
    [0, 1, 2, 0, 1, 2],
  )
  t.equal(lines.idle, 0)
  t.notOk(lines.hasRoom)
  t.throws(() => lines.enter(), { message: 'bug: an execution was begun without a free instance' })
  lines.leave(1, undefined)
  t.ok(lines.hasRoom)
  t.equal(lines.idle, 0, 'it has another one open')
  t.equal(lines.enter(), 1)
})

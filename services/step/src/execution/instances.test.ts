import t from 'tap'
import { Instances } from './scheduler.ts'

const lasting = (computeInferNs: number) => ({
  computeInputNs: 0,
  computeInferNs,
  computeOutputNs: 0,
})

/** The limit after executions of these lengths, in microseconds. */
function limitAfter(lengthsUs: readonly number[], most = 64): number {
  const instances = new Instances(1, most)
  for (const us of lengthsUs) {
    instances.begin(0)
    instances.end(0, lasting(us * 1000))
  }
  let limit = 0
  for (; instances.pick() === 0; limit += 1) instances.begin(0)
  return limit
}

await t.test('an instance has half a millisecond of work before it', async (t) => {
  for (const [us, limit] of [
    [5, 64],
    [10, 50],
    [100, 5],
    [260, 1],
    [10_000, 1],
  ] as const) {
    t.equal(limitAfter([us]), limit, `${us} us`)
  }
  t.equal(limitAfter([]), 1, 'nothing is known')
  t.equal(limitAfter([0]), 1, 'nothing was computed')
  t.equal(limitAfter([0.001]), 64, 'a model of a nanosecond')
  t.equal(limitAfter([5], 1), 1, 'an engine that takes one at a time')
})

await t.test('the mean follows a model that becomes slower or faster', async (t) => {
  const short = Array.from({ length: 40 }, () => 10)
  t.equal(limitAfter([...short, 2000]), 1, 'one long execution is enough')
  t.ok(limitAfter([20_000, ...short, ...short]) > 40, 'a first one that warms up is forgotten')
})

await t.test('the least busy instance is next, the first of equally busy ones', async (t) => {
  const instances = new Instances(3, 2)
  const take = (): number => {
    const instance = instances.pick()
    if (instance >= 0) instances.begin(instance)
    return instance
  }
  t.equal(instances.idle, 3)
  t.equal(take(), 0)
  instances.end(0, lasting(1))
  t.same([0, 1, 2, 3, 4, 5, 6].map(take), [0, 1, 2, 0, 1, 2, -1])
  t.equal(instances.idle, 0)
  instances.end(1, undefined)
  t.equal(instances.idle, 0, 'it has another one inflight')
  t.equal(take(), 1)
})

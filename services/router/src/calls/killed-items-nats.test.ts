// needs: nats
import { until, withoutNatsServer } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { GraphStep } from '@tutti/graph'
import { collect, responsesTo } from '@tutti/tensor/testing'
import t from 'tap'
import { openFaultsOverNats } from '../testing/fault-rigs.ts'
import { executedOf, setFault } from '../testing/faulty-executor.ts'
import { floats, quiet, request, step, toFloats } from '../testing/index.ts'

const EACH = { items: ['X'], maxItems: 64, maxParallel: 4, gather: 'Stack' } as const
const DEFAULT = { datatype: 'FP32', shape: [1], value: [-1] } as const
const retry = {
  maxRetries: 2,
  retryOn: ['UNAVAILABLE'],
  backoffMs: 1,
  budgetPercent: 100,
} as const
const IO = `platform: "ensemble"
  input { name: "IN" data_type: TYPE_FP32 dims: [ -1, -1 ] }
  output { name: "OUT" data_type: TYPE_FP32 dims: [ -1, -1 ] }`

/** Rules under which twelve items run four at a time. */
const TOGETHER: readonly Pick<GraphStep, 'forEach' | 'call'>[] = [
  { forEach: EACH },
  { forEach: { ...EACH, itemDefault: { Y: DEFAULT } } },
  { forEach: EACH, call: { retry, mayRunTwice: true } },
]

await t.test(
  'items that a killed replica has at the same time are run twice only where they may be',
  { skip: withoutNatsServer() },
  async (t) => {
    const folder = t.testdir({})
    const { router, ready } = await openFaultsOverNats(t, folder, {
      ensembles: Object.fromEntries(
        TOGETHER.map((_, i) => [
          `e${i}`,
          `${IO} ensemble_scheduling { ${step('m', 'IN', 'OUT')} }`,
        ]),
      ),
      beyond: Object.fromEntries(
        TOGETHER.map((rules, i) => [`e${i}`, { steps: [{ name: 'read', ...rules }] }]),
      ),
    })
    const items = Array.from({ length: 12 }, (_, i) => i)
    const kill = async (i: number) => {
      await ready(i)
      setFault(folder, 'm', 'die', 1, 5)
      const asked = request('IN', items, { inputs: [floats('IN', items, [12, 1])] })
      const got = await collect(responsesTo(router.resolve(`e${i}`, ''), asked, quiet)).then(
        ([answer]) => [...toFloats(answer?.outputs[0]?.data)],
        (error: unknown) => ServeError.from(error),
      )
      await until('nothing is held', () => router.memory.count === 0)
      const executed = executedOf(folder, 'm')
      return {
        got,
        executed,
        times: items.map((item) => executed.filter((x) => x === item).length),
      }
    }
    const plain = await kill(0)
    t.match(plain.got, { reason: 'STEP_LOST', message: /step 'read\[\d+\]': / })
    t.ok(plain.times.every((times) => times <= 1))
    const defaulted = await kill(1)
    t.ok(defaulted.times.every((times) => times <= 1))
    t.ok(Array.isArray(defaulted.got) && defaulted.got.length === 12)
    t.equal(new Set(defaulted.executed).size, defaulted.executed.length)
    t.same(new Set([defaulted.got].flat()), new Set([1, -1]))
    const tried = await kill(2)
    t.same(tried.got, Array(12).fill(1))
    t.ok(tried.times.every((times) => times >= 1 && times <= 2))
    t.ok(tried.times.includes(2))
  },
)

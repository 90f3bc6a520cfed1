// needs: nats
import { until, withoutNatsServer } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { CallRules, GraphStep } from '@tutti/graph'
import { collect, responsesTo } from '@tutti/tensor/testing'
import t, { type Test } from 'tap'
import { type FaultRig, openFaultsHere, openFaultsOverNats } from '../testing/fault-rigs.ts'
import {
  executedOf,
  executionsOf,
  type ReplicaFault,
  setFault,
} from '../testing/faulty-executor.ts'
import { chain, floats, quiet, request, step, toFloats } from '../testing/index.ts'

/* Each row runs `m` for the items 1, 2, 3 and 4, or four times, and breaks it from the third execution on. `m` answers with 1, `n` with 2. */

const ITEMS = [1, 2, 3, 4]
const AFTER = 2
const EACH = { items: ['X'], maxItems: 64, maxParallel: 1, gather: 'Stack' } as const
const DEFAULT = { datatype: 'FP32', shape: [1], value: [-1] } as const
const forEach = EACH
const withDefault = { ...EACH, itemDefault: { Y: DEFAULT } }
const loop = { carry: [{ input: 'X', output: 'Y' }], reads: [], maxIterations: 4 }
const retry = {
  maxRetries: 2,
  retryOn: ['UNAVAILABLE'],
  backoffMs: 1,
  budgetPercent: 100,
} as const
const again: CallRules = { retry, mayRunTwice: true }
const internal: CallRules = { retry: { ...retry, retryOn: ['INTERNAL'] }, mayRunTwice: true }
const timeoutMs = 300
const hedge = { afterMs: 20, maxPercent: 100 }
const fallback = { kind: 'fallback', model: 'n', version: -1 } as const
const four = { ...DEFAULT, shape: [4, 1], value: [-1, -1, -1, -1] }
const stepDefault = { kind: 'default', outputs: [{ name: 'Y', value: four }] } as const
const ALWAYS = 1000

interface Row {
  readonly rules: Pick<GraphStep, 'forEach' | 'loop' | 'call'>
  /** Rules of the step of an ensemble that runs in place of `m`. */
  readonly inner?: CallRules
  readonly fault: readonly [ReplicaFault, times: number]
  /** Values of the answer, or the reason and the end of the text of the error. */
  readonly wanted: readonly number[] | readonly [reason: string, text: string]
  /** Items for which `m` is executed, in their order. */
  readonly executed: readonly number[]
  /** Executions of `n`. */
  readonly fallbacks?: number
}

const LOST = ['STEP_LOST', "step 'read[2]': "] as const
const BROKEN = ['ENGINE_FAILED', "step 'read[2]': it broke"] as const
const LATE = ['STEP_TIMEOUT', "step 'read': no answer within its timeout of 300 ms"] as const
const first = [1, 2, 3]
const repeated = [1, 2, 3, 3, 4]
const withAll = [1, 2, 3, 4]

const ROWS: readonly Row[] = [
  { rules: { forEach }, fault: ['none', 0], wanted: [1, 1, 1, 1], executed: withAll },
  { rules: { forEach }, fault: ['die', 1], wanted: LOST, executed: first },
  { rules: { forEach }, fault: ['fail', 1], wanted: BROKEN, executed: first },
  { rules: { forEach }, fault: ['twice', ALWAYS], wanted: [1, 1, 1, 1], executed: withAll },
  { rules: { forEach, call: { retry } }, fault: ['die', 1], wanted: LOST, executed: first },
  { rules: { forEach, call: again }, fault: ['die', 1], wanted: [1, 1, 1, 1], executed: repeated },
  {
    rules: { forEach, call: internal },
    fault: ['fail', ALWAYS],
    wanted: BROKEN,
    executed: [1, 2, 3, 3, 3],
  },
  {
    rules: { forEach, call: internal },
    fault: ['fail', 2],
    wanted: [1, 1, 1, 1],
    executed: [1, 2, 3, 3, 3, 4],
  },
  {
    rules: { forEach: withDefault },
    fault: ['die', 1],
    wanted: [1, 1, -1, 1],
    executed: withAll,
  },
  {
    rules: { forEach: withDefault },
    fault: ['fail', ALWAYS],
    wanted: [1, 1, -1, -1],
    executed: withAll,
  },
  {
    rules: { forEach: withDefault, call: again },
    fault: ['die', 1],
    wanted: [1, 1, 1, 1],
    executed: repeated,
  },
  { rules: { forEach, call: { timeoutMs } }, fault: ['hang', 1], wanted: LATE, executed: first },
  { rules: { forEach, call: { timeoutMs } }, fault: ['late', 1], wanted: LATE, executed: first },
  {
    rules: { forEach: withDefault, call: { timeoutMs } },
    fault: ['hang', 1],
    wanted: LATE,
    executed: first,
  },
  {
    rules: { forEach, call: { timeoutMs, hedge, mayRunTwice: true } },
    fault: ['hang', 1],
    wanted: [1, 1, 1, 1],
    executed: repeated,
  },
  {
    rules: { forEach, call: { onError: fallback } },
    fault: ['die', 1],
    wanted: [2, 2, 2, 2],
    executed: first,
    fallbacks: 4,
  },
  {
    rules: { forEach, call: { onError: fallback, timeoutMs } },
    fault: ['hang', 1],
    wanted: [2, 2, 2, 2],
    executed: first,
    fallbacks: 4,
  },
  {
    rules: { forEach, call: { onError: stepDefault } },
    fault: ['die', 1],
    wanted: [-1, -1, -1, -1],
    executed: first,
  },
  {
    rules: { forEach },
    inner: {},
    fault: ['die', 1],
    wanted: ['STEP_LOST', "step 'read[2]': in ensemble 'i"],
    executed: first,
  },
  {
    rules: { forEach },
    inner: again,
    fault: ['die', 1],
    wanted: [1, 1, 1, 1],
    executed: repeated,
  },
  {
    rules: { loop },
    fault: ['die', 1],
    wanted: ['STEP_LOST', "step 'read', iteration 3: "],
    executed: [1, 1, 1],
  },
  { rules: { loop, call: again }, fault: ['die', 1], wanted: [1], executed: [1, 1, 1, 1, 1] },
  {
    rules: { loop, call: { timeoutMs } },
    fault: ['hang', 1],
    wanted: LATE,
    executed: [1, 1, 1],
  },
]

const IO = `platform: "ensemble"
  input { name: "IN" data_type: TYPE_FP32 dims: [ -1, -1 ] }
  output { name: "OUT" data_type: TYPE_FP32 dims: [ -1, -1 ] }`
const OVER_INNER = { names: ['IN', 'OUT'] }
const scheduling = ({ rules, inner }: Row, i: number): string => {
  if (rules.loop !== undefined) return chain('m')
  const only = inner ? step(`i${i}`, 'IN', 'OUT', OVER_INNER) : step('m', 'IN', 'OUT')
  return `${IO} ensemble_scheduling { ${only} }`
}
const toItems = ({ rules, inner }: Row): Row['rules'] => {
  if (inner === undefined || rules.forEach === undefined) return rules
  return { ...rules, forEach: { ...rules.forEach, items: ['IN'] } }
}
const GRAPHS = {
  ensembles: Object.fromEntries(
    ROWS.flatMap((row, i) => [
      [`e${i}`, scheduling(row, i)],
      ...(row.inner === undefined ? [] : [[`i${i}`, chain('m')]]),
    ]),
  ),
  beyond: Object.fromEntries(
    ROWS.flatMap((row, i) => [
      [`e${i}`, { steps: [{ name: 'read', ...toItems(row) }] }],
      ...(row.inner === undefined
        ? []
        : [[`i${i}`, { steps: [{ name: 'only', call: row.inner }] }]]),
    ]),
  ),
}

async function ask(router: FaultRig['router'], ensemble: string, rules: Row['rules']) {
  const values = rules.loop === undefined ? ITEMS : [1]
  const shape = rules.loop === undefined ? [ITEMS.length, 1] : [1]
  const asked = request('IN', values, { inputs: [floats('IN', values, shape)] })
  try {
    const [answer] = await collect(responsesTo(router.resolve(ensemble, ''), asked, quiet))
    return [...toFloats(answer?.outputs[0]?.data)]
  } catch (error) {
    const { reason, message } = ServeError.from(error)
    return [reason, message]
  }
}

/** Counts the replicas that die in the rows before one. */
const deaths = (before: number): number =>
  ROWS.slice(0, before).filter(({ fault: [kind] }) => kind === 'die').length

/** Asks for each row, and compares. */
async function check(t: Test, { router, ready, isIdle }: FaultRig, folder: string): Promise<void> {
  for (const [i, { rules, fault, wanted, executed, fallbacks = 0 }] of ROWS.entries()) {
    await ready(deaths(i))
    setFault(folder, 'm', ...fault, AFTER)
    setFault(folder, 'n', 'none', 0)
    const got = await ask(router, `e${i}`, rules)
    const name = `${i}: ${fault.join(' ')}, ${JSON.stringify(rules)}`
    if (typeof wanted[0] === 'string') {
      const [reason, text = ''] = wanted
      t.equal(got[0], reason, name)
      t.ok(String(got[1]).includes(String(text)), `${got[1]} has ${text}`)
    } else t.same(got, wanted, name)
    await until(`${name}: nothing is in flight`, isIdle)
    t.same(executedOf(folder, 'm'), executed, `${name}: executions`)
    t.equal(executionsOf(folder, 'n'), fallbacks)
    t.equal(router.memory.count, 0)
  }
}

await t.test('in one process, each item is executed as often as declared', async (t) => {
  const folder = t.testdir({})
  await check(t, openFaultsHere(folder, GRAPHS), folder)
})

await t.test(
  'over NATS, each item is executed as often as declared, with kill -9 in the middle',
  { skip: withoutNatsServer() },
  async (t) => {
    const folder = t.testdir({})
    await check(t, await openFaultsOverNats(t, folder, GRAPHS), folder)
  },
)

/** Rules under which twelve items run four at a time. */
const TOGETHER: readonly Row['rules'][] = [
  { forEach: { ...EACH, maxParallel: 4 } },
  { forEach: { ...withDefault, maxParallel: 4 } },
  { forEach: { ...EACH, maxParallel: 4 }, call: again },
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

// needs: nats
import { systemClock } from '@tutti/chassis'
import { until, withoutNatsServer } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { CallRules, GraphStep } from '@tutti/graph'
import { type StepSpan, StepSpans } from '@tutti/telemetry'
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
/** Far longer than an item takes, so that only the one that hangs has a second attempt. */
const hedge = { afterMs: 1000, maxPercent: 100 }
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
  /**
   * The executions of the step and what comes after them, as its spans tell: their end, items, calls and items that failed or iterations,
   * and what else was counted.
   */
  readonly told: string
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
  {
    rules: { forEach },
    fault: ['none', 0],
    wanted: [1, 1, 1, 1],
    executed: withAll,
    told: 'answered 4/4/0',
  },
  { rules: { forEach }, fault: ['die', 1], wanted: LOST, executed: first, told: 'STEP_LOST 4/3/1' },
  {
    rules: { forEach },
    fault: ['fail', 1],
    wanted: BROKEN,
    executed: first,
    told: 'ENGINE_FAILED 4/3/1',
  },
  {
    rules: { forEach },
    fault: ['twice', ALWAYS],
    wanted: [1, 1, 1, 1],
    executed: withAll,
    told: 'answered 4/4/0',
  },
  {
    rules: { forEach, call: { retry } },
    fault: ['die', 1],
    wanted: LOST,
    executed: first,
    told: 'STEP_LOST 4/3/1',
  },
  {
    rules: { forEach, call: again },
    fault: ['die', 1],
    wanted: [1, 1, 1, 1],
    executed: repeated,
    told: 'answered 4/4/0 retried 1',
  },
  {
    rules: { forEach, call: internal },
    fault: ['fail', ALWAYS],
    wanted: BROKEN,
    executed: [1, 2, 3, 3, 3],
    told: 'ENGINE_FAILED 4/3/1 retried 2',
  },
  {
    rules: { forEach, call: internal },
    fault: ['fail', 2],
    wanted: [1, 1, 1, 1],
    executed: [1, 2, 3, 3, 3, 4],
    told: 'answered 4/4/0 retried 2',
  },
  {
    rules: { forEach: withDefault },
    fault: ['die', 1],
    wanted: [1, 1, -1, 1],
    executed: withAll,
    told: 'answered 4/4/1',
  },
  {
    rules: { forEach: withDefault },
    fault: ['fail', ALWAYS],
    wanted: [1, 1, -1, -1],
    executed: withAll,
    told: 'answered 4/4/2',
  },
  {
    rules: { forEach: withDefault, call: again },
    fault: ['die', 1],
    wanted: [1, 1, 1, 1],
    executed: repeated,
    told: 'answered 4/4/0 retried 1',
  },
  {
    rules: { forEach, call: { timeoutMs } },
    fault: ['hang', 1],
    wanted: LATE,
    executed: first,
    told: 'STEP_TIMEOUT 4/3/0',
  },
  {
    rules: { forEach, call: { timeoutMs } },
    fault: ['late', 1],
    wanted: LATE,
    executed: first,
    told: 'STEP_TIMEOUT 4/3/0',
  },
  {
    rules: { forEach: withDefault, call: { timeoutMs } },
    fault: ['hang', 1],
    wanted: LATE,
    executed: first,
    told: 'STEP_TIMEOUT 4/3/0',
  },
  {
    rules: { forEach, call: { hedge, mayRunTwice: true } },
    fault: ['hang', 1],
    wanted: [1, 1, 1, 1],
    executed: repeated,
    told: 'answered 4/4/0 hedged 1 hedgeWon 1',
  },
  {
    rules: { forEach, call: { onError: fallback } },
    fault: ['die', 1],
    wanted: [2, 2, 2, 2],
    executed: first,
    told: 'STEP_LOST 4/3/1, fallback 4/4/0',
    fallbacks: 4,
  },
  {
    rules: { forEach, call: { onError: fallback, timeoutMs } },
    fault: ['hang', 1],
    wanted: [2, 2, 2, 2],
    executed: first,
    told: 'STEP_TIMEOUT 4/3/0, fallback 4/4/0',
    fallbacks: 4,
  },
  {
    rules: { forEach, call: { onError: stepDefault } },
    fault: ['die', 1],
    wanted: [-1, -1, -1, -1],
    executed: first,
    told: 'STEP_LOST 4/3/1, defaulted',
  },
  {
    rules: { forEach },
    inner: {},
    fault: ['die', 1],
    wanted: ['STEP_LOST', "step 'read[2]': in ensemble 'i"],
    executed: first,
    told: 'STEP_LOST 4/3/1',
  },
  {
    rules: { forEach },
    inner: again,
    fault: ['die', 1],
    wanted: [1, 1, 1, 1],
    executed: repeated,
    told: 'answered 4/4/0',
  },
  {
    rules: { loop },
    fault: ['die', 1],
    wanted: ['STEP_LOST', "step 'read', iteration 3: "],
    executed: [1, 1, 1],
    told: 'STEP_LOST x3',
  },
  {
    rules: { loop, call: again },
    fault: ['die', 1],
    wanted: [1],
    executed: [1, 1, 1, 1, 1],
    told: 'answered x4 retried 1',
  },
  {
    rules: { loop, call: { timeoutMs } },
    fault: ['hang', 1],
    wanted: LATE,
    executed: [1, 1, 1],
    told: 'STEP_TIMEOUT x3',
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

/** Shows the spans of the steps of an ensemble. */
function toldBy(spans: readonly StepSpan[]): string {
  const own = spans.filter(({ depth }) => depth === 1)
  return own.map(toldOf).join(', ')
}

function toldOf({ passed, isFallback, reason, counts }: StepSpan): string {
  if (passed !== undefined) return passed
  const end = isFallback === true ? 'fallback' : reason || 'answered'
  const { items, itemCalls, failedItems, iterations, ...others } = counts ?? {}
  const times = iterations === undefined ? `${items}/${itemCalls}/${failedItems}` : `x${iterations}`
  return [end, times, ...Object.entries(others).flat()].join(' ')
}

async function ask(router: FaultRig['router'], ensemble: string, rules: Row['rules']) {
  const values = rules.loop === undefined ? ITEMS : [1]
  const shape = rules.loop === undefined ? [ITEMS.length, 1] : [1]
  const asked = request('IN', values, { inputs: [floats('IN', values, shape)] })
  const spans = new StepSpans(systemClock)
  const watch = spans.began({ name: ensemble, version: 1, isEnsemble: true })
  const context = { ...quiet, ...(watch.steps && { observer: watch.steps }) }
  const end = () => {
    watch.ended?.({ elapsedNs: 0, batchSize: 0 })
    return toldBy(spans.read().spans)
  }
  try {
    const [answer] = await collect(responsesTo(router.resolve(ensemble, ''), asked, context))
    return { got: [...toFloats(answer?.outputs[0]?.data)], told: end() }
  } catch (error) {
    const { reason, message } = ServeError.from(error)
    return { got: [reason, message], told: end() }
  }
}

/** Counts the replicas that die in the rows before one. */
const deaths = (before: number): number =>
  ROWS.slice(0, before).filter(({ fault: [kind] }) => kind === 'die').length

/** Asks for each row, and compares. */
async function check(t: Test, { router, ready, isIdle }: FaultRig, folder: string): Promise<void> {
  for (const [i, { rules, fault, wanted, executed, fallbacks = 0, ...row }] of ROWS.entries()) {
    await ready(deaths(i))
    setFault(folder, 'm', ...fault, AFTER)
    setFault(folder, 'n', 'none', 0)
    const { got, told } = await ask(router, `e${i}`, rules)
    const name = `${i}: ${fault.join(' ')}, ${JSON.stringify(rules)}`
    if (typeof wanted[0] === 'string') {
      const [reason, text = ''] = wanted
      t.equal(got[0], reason, name)
      t.ok(String(got[1]).includes(String(text)), `${got[1]} has ${text}`)
    } else t.same(got, wanted, name)
    t.equal(told, row.told, name)
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

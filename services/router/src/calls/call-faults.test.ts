// needs: nats
import { until, withoutNatsServer } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { CallRules } from '@tutti/graph'
import { collect, responsesTo } from '@tutti/tensor/testing'
import t, { type Test } from 'tap'
import { type FaultRig, openFaultsHere, openFaultsOverNats } from '../testing/fault-rigs.ts'
import { executionsOf, type ReplicaFault, setFault } from '../testing/faulty-executor.ts'
import { chain, quiet, request, toFloats } from '../testing/index.ts'

const UNAVAILABLE = {
  maxRetries: 2,
  retryOn: ['UNAVAILABLE'],
  backoffMs: 1,
  budgetPercent: 100,
} as const
const INTERNAL = { ...UNAVAILABLE, retryOn: ['INTERNAL'] } as const
const onError = { kind: 'fallback', model: 'n', version: -1 } as const
const mayRunTwice = true
const timeoutMs = 300
const ALWAYS = 1000

/** Rules of a step that runs `m`; how `m` fails, and in how many executions; and what is to come: an answer, and executions of `m` and `n`. */
type Row = readonly [
  CallRules,
  ReplicaFault,
  times: number,
  wanted: number | string,
  m: number,
  n: number,
]

const ROWS: readonly Row[] = [
  [{}, 'none', 0, 1, 1, 0],
  [{}, 'fail', ALWAYS, 'ENGINE_FAILED', 1, 0],
  [{}, 'twice', ALWAYS, 1, 1, 0],
  [{}, 'die', 1, 'STEP_LOST', 1, 0],
  [{ retry: UNAVAILABLE }, 'die', 1, 'STEP_LOST', 1, 0],
  [{ retry: UNAVAILABLE, mayRunTwice }, 'die', 1, 1, 2, 0],
  [{ retry: UNAVAILABLE, mayRunTwice }, 'fail', ALWAYS, 'ENGINE_FAILED', 1, 0],
  [{ retry: UNAVAILABLE, mayRunTwice }, 'twice', ALWAYS, 1, 1, 0],
  [{ retry: INTERNAL, mayRunTwice }, 'fail', ALWAYS, 'ENGINE_FAILED', 3, 0],
  [{ retry: INTERNAL, mayRunTwice }, 'fail', 2, 1, 3, 0],
  [{ timeoutMs }, 'hang', ALWAYS, 'STEP_TIMEOUT', 1, 0],
  [{ timeoutMs }, 'late', ALWAYS, 'STEP_TIMEOUT', 1, 0],
  [{ timeoutMs, retry: INTERNAL, mayRunTwice }, 'late', ALWAYS, 'STEP_TIMEOUT', 1, 0],
  [{ timeoutMs, hedge: { afterMs: 20, maxPercent: 100 }, mayRunTwice }, 'hang', 1, 1, 2, 0],
  [{ onError }, 'none', 0, 1, 1, 0],
  [{ onError }, 'fail', ALWAYS, 2, 1, 1],
  [{ onError }, 'twice', ALWAYS, 1, 1, 0],
  [{ onError }, 'die', 1, 2, 1, 1],
  [{ onError, timeoutMs }, 'hang', ALWAYS, 2, 1, 1],
  [{ onError, timeoutMs }, 'late', ALWAYS, 2, 1, 1],
  [{ onError, retry: INTERNAL, mayRunTwice }, 'fail', ALWAYS, 2, 3, 1],
  [{ onError, retry: INTERNAL, mayRunTwice }, 'fail', 1, 1, 2, 0],
]

const ENSEMBLES = Object.fromEntries(ROWS.map((_, i) => [`e${i}`, chain('m')]))
const BEYOND = Object.fromEntries(
  ROWS.map(([call], i) => [`e${i}`, { steps: [{ name: 'only', call }] }]),
)

async function outcome(
  router: FaultRig['router'],
  ensemble: string,
): Promise<number | string | undefined> {
  try {
    const stream = responsesTo(router.resolve(ensemble, ''), request('IN'), quiet)
    const [answer] = await collect(stream)
    return toFloats(answer?.outputs[0]?.data)[0]
  } catch (error) {
    return ServeError.from(error).reason
  }
}

/** Asks for each row, and compares. */
async function check(t: Test, { router, ready, isIdle }: FaultRig, folder: string): Promise<void> {
  for (const [i, [rules, fault, times, wanted, m, n]] of ROWS.entries()) {
    await ready(ROWS.slice(0, i).filter(([, before]) => before === 'die').length)
    setFault(folder, 'm', fault, times)
    setFault(folder, 'n', 'none', 0)
    const got = await outcome(router, `e${i}`)
    const name = `${fault} ${times}, ${JSON.stringify(rules)}`
    t.equal(got, wanted, name)
    await until(`${name}: nothing is in flight`, isIdle)
    t.same([executionsOf(folder, 'm'), executionsOf(folder, 'n')], [m, n], 'executions')
    t.equal(router.memory.count, 0)
  }
}

const GRAPHS = { ensembles: ENSEMBLES, beyond: BEYOND }

await t.test('in one process, executions are as many as declared', async (t) => {
  const folder = t.testdir({})
  await check(t, openFaultsHere(folder, GRAPHS), folder)
})

await t.test(
  'over NATS, executions are as many as declared, with kill -9',
  { skip: withoutNatsServer() },
  async (t) => {
    const folder = t.testdir({})
    await check(t, await openFaultsOverNats(t, folder, GRAPHS), folder)
  },
)

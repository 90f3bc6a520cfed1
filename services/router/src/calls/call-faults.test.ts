// needs: nats
import { fileURLToPath } from 'node:url'
import { type StartedProcess, startProcess, until, withoutNatsServer } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { CallRules } from '@tutti/graph'
import { collect, responsesTo } from '@tutti/tensor/testing'
import t, { type Test } from 'tap'
import {
  executionsOf,
  faultyExecutor,
  type ReplicaFault,
  setFault,
} from '../testing/faulty-executor.ts'
import {
  chain,
  oneToOne,
  openNatsRouter,
  quiet,
  ReplicaExecutors,
  request,
  testRouter,
  toConfig,
  toFloats,
} from '../testing/index.ts'

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
const MODELS = ['m', 'n'].map((name) => {
  const versions = [{ version: 1, revision: 'r', state: 'READY' as const, reason: '' }]
  return { name, config: toConfig(name, oneToOne), labels: {}, versions, reason: '' }
})
const REPLICAS = ['a', 'b']

type Router = ReturnType<typeof testRouter>['router']

function describe(router: Router, replica: string): void {
  router.view.describe({ replica, models: MODELS }, { statistics: async () => [] })
}

async function outcome(router: Router, ensemble: string): Promise<number | string | undefined> {
  try {
    const stream = responsesTo(router.resolve(ensemble, ''), request('IN'), quiet)
    const [answer] = await collect(stream)
    return toFloats(answer?.outputs[0]?.data)[0]
  } catch (error) {
    return ServeError.from(error).reason
  }
}

/** Asks for each row, and compares. @param o.ready - waits until both replicas serve, after so many deaths. */
async function check(
  t: Test,
  o: {
    readonly router: Router
    readonly folder: string
    readonly ready: (deaths: number) => Promise<void>
    readonly isIdle: () => boolean
  },
): Promise<void> {
  const { router, folder } = o
  for (const [i, [rules, fault, times, wanted, m, n]] of ROWS.entries()) {
    await o.ready(ROWS.slice(0, i).filter(([, before]) => before === 'die').length)
    setFault(folder, 'm', fault, times)
    setFault(folder, 'n', 'none', 0)
    const got = await outcome(router, `e${i}`)
    const name = `${fault} ${times}, ${JSON.stringify(rules)}`
    t.equal(got, wanted, name)
    await until(`${name}: nothing is in flight`, () => o.isIdle())
    t.same([executionsOf(folder, 'm'), executionsOf(folder, 'n')], [m, n], 'executions')
    t.equal(router.memory.count, 0)
  }
}

await t.test('in one process, executions are as many as declared', async (t) => {
  const folder = t.testdir({})
  const replicas = new ReplicaExecutors()
  const { router, directory } = testRouter({ replicas, ensembles: ENSEMBLES, beyond: BEYOND })
  for (const replica of REPLICAS) {
    replicas.set(replica, ({ model }) =>
      faultyExecutor(folder, model, (fail) => fail(new ServeError('STEP_LOST', 'it died'))),
    )
    describe(router, replica)
  }
  const members = () => [...directory.places.byRevision.values()].flat()
  await check(t, {
    router,
    folder,
    ready: async () => {},
    isIdle: () => members().every(({ inFlight }) => inFlight === 0),
  })
})

const readyWhen = (line: string): boolean => line === 'ready'
const STEP = fileURLToPath(new URL('../testing/faulty-step.ts', import.meta.url))

await t.test(
  'over NATS, executions are as many as declared, with kill -9',
  { skip: withoutNatsServer() },
  async (t) => {
    const folder = t.testdir({})
    const { server, router, members } = await openNatsRouter(t, {
      ensembles: ENSEMBLES,
      beyond: BEYOND,
    })
    const steps = new Map<string, StartedProcess>()
    t.teardown(() => Promise.all([...steps.values()].map((one) => one.stop('SIGKILL'))))
    let started = 0
    const dead: string[] = []
    let restarted = 0
    const start = async (place: string): Promise<void> => {
      started += 1
      const member = `step-${place}-${started}`
      const args = [STEP, server.url, member, folder]
      const step = await startProcess(process.execPath, args, { readyWhen })
      steps.set(place, step)
      void step.exited.then(() => dead.push(place))
      describe(router, member)
    }
    for (const place of REPLICAS) await start(place)
    await check(t, {
      router,
      folder,
      ready: async (deaths) => {
        await until('all that were to die are dead', () => dead.length + restarted === deaths)
        for (const place of dead.splice(0)) {
          restarted += 1
          await start(place)
        }
        await until('two replicas are there', () => members().length === 2)
      },
      isIdle: () => members().every(({ inFlight }) => inFlight === 0),
    })
  },
)

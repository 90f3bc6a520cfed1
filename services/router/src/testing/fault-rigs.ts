import { fileURLToPath } from 'node:url'
import { type StartedProcess, startProcess, until } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { Test } from 'tap'
import { faultyExecutor } from './faulty-executor.ts'
import { openNatsRouter } from './nats-router.ts'
import { ReplicaExecutors } from './replica-executors.ts'
import { oneToOne } from './requests.ts'
import { testRouter, toConfig } from './test-router.ts'

type Router = ReturnType<typeof testRouter>['router']
type Graphs = Pick<Parameters<typeof testRouter>[0], 'ensembles' | 'beyond'>

/** A router over two replicas of the models `m` and `n` whose faults a test sets in a folder. */
export interface FaultRig {
  readonly router: Router
  /** Waits until both replicas serve, after so many deaths of the test so far. */
  readonly ready: (deaths: number) => Promise<void>
  readonly isIdle: () => boolean
}

const REPLICAS = ['a', 'b']
const MODELS = ['m', 'n'].map((name) => {
  const versions = [{ version: 1, revision: 'r', state: 'READY' as const, reason: '' }]
  return { name, config: toConfig(name, oneToOne), labels: {}, versions, reason: '' }
})

function describe(router: Router, replica: string): void {
  router.view.describe({ replica, models: MODELS }, { statistics: async () => [] })
}

/** Opens replicas in this process: one that dies says so, and serves on. */
export function openFaultsHere(folder: string, graphs: Graphs): FaultRig {
  const replicas = new ReplicaExecutors()
  const { router, directory } = testRouter({ replicas, ...graphs })
  for (const replica of REPLICAS) {
    replicas.set(replica, ({ model }) =>
      faultyExecutor(folder, model, (fail) => fail(new ServeError('STEP_LOST', 'it died'))),
    )
    describe(router, replica)
  }
  const members = () => [...directory.places.byRevision.values()].flat()
  return {
    router,
    ready: async () => {},
    isIdle: () => members().every(({ inFlight }) => inFlight === 0),
  }
}

const readyWhen = (line: string): boolean => line === 'ready'
const STEP = fileURLToPath(new URL('faulty-step.ts', import.meta.url))

/** Opens replicas in processes of their own, over a broker: one that dies is killed, and started anew. */
export async function openFaultsOverNats(
  t: Test,
  folder: string,
  graphs: Graphs,
): Promise<FaultRig> {
  const { server, router, members } = await openNatsRouter(t, graphs)
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
  return {
    router,
    ready: async (deaths) => {
      await until('all that were to die are dead', () => dead.length + restarted === deaths)
      for (const place of dead.splice(0)) {
        restarted += 1
        await start(place)
      }
      await until('two replicas are there', () => members().length === 2)
    },
    isIdle: () => members().every(({ inFlight }) => inFlight === 0),
  }
}

import { silentLogger, systemClock } from '@tutti/chassis'
import { startNatsServer } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { FindExecutor } from '@tutti/tensor'
import { openRouterEndpoint, openStepEndpoint, StepDirectory } from '@tutti/transport'
import type { Test } from 'tap'
import { ReplicaExecutors } from './replica-executors.ts'
import { testRouter, toConfig } from './test-router.ts'

/** A router over the replicas of a test on a broker of its own. All end with the test. */
export async function openNatsRouter(
  t: Test,
  o: Pick<Parameters<typeof testRouter>[0], 'ensembles' | 'beyond'>,
) {
  const server = await startNatsServer()
  t.teardown(() => server.stop())
  const broker = { servers: [server.url], prefix: 'tutti', repository: 'default' }
  const common = { broker, clock: systemClock, log: silentLogger, answer: async () => ({}) }
  const directory = new StepDirectory()
  const endpoint = await openRouterEndpoint({
    ...common,
    member: 'router',
    directory,
    executor: () => ({
      execute: (_request, sink) => sink.fail(new ServeError('UNSUPPORTED', 'none'), 'no'),
    }),
    describe: () => ({}),
    routerChanged: () => {},
    stepChanged: () => {},
    stepGone: () => {},
  })
  t.teardown(() => endpoint.close())
  const replicas = Object.assign(new ReplicaExecutors(), { executor: endpoint.executor })
  const { router } = testRouter({ replicas, directory, ...o })
  return {
    server,
    router,
    /** Lists the replicas of version 1 of the model `m` that the router knows. */
    members: () => directory.places.byRevision.get('m 1 r') ?? [],
    /**
     * Opens a replica of the model `m` in this process.
     *
     * @param config - its config.pbtxt.
     */
    openReplica: async (member: string, executor: FindExecutor, config: string) => {
      const step = await openStepEndpoint({
        ...common,
        member,
        executor,
        describe: () => ({}),
        revisions: () => [['m', 1, 'r']],
        load: () => ({ inFlight: 0, queued: 0, freeSlots: 8 }),
        onChange: () => () => {},
      })
      t.teardown(() => step.close())
      const versions = [{ version: 1, revision: 'r', state: 'READY' as const, reason: '' }]
      const models = [
        { name: 'm', config: toConfig('m', config), labels: {}, versions, reason: '' },
      ]
      router.view.describe({ replica: member, models }, { statistics: async () => [] })
    },
  }
}

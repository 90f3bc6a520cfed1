import { ServeError } from '@tutti/errors'
import t from 'tap'
import { toTime } from '../../runtime/conditions.ts'
import { modelDeployment, modelPod, modelWorld } from '../../testing/model-world.ts'
import type { ModelWorld } from './model-world.ts'
import { conditionsOfModel, summarize } from './summarize.ts'

const NOW = Date.parse('2026-01-01T00:00:00Z')
const fields = { scaling: { minReplicas: 0 } }

/** A Model that was ready once, and has so many pods wanted, none of which serves. */
function sleeper(wanted: number, o: Partial<ModelWorld> = {}): ModelWorld {
  const before = summarize(modelWorld({ fields }), NOW)
  const status = { readyReplicas: 0, availableReplicas: 0 }
  const deployment = modelDeployment({ replicas: wanted, status })
  return modelWorld({ fields, before, deployment, pods: [], ...o })
}

const readyOf = (world: ModelWorld): string => {
  const { status, reason } = conditionsOfModel(world).Ready
  return `${status}/${reason}`
}

await t.test('a Model that sleeps is ready, and so is one that wakes', (t) => {
  t.match(conditionsOfModel(sleeper(0)), {
    WorkloadAvailable: { status: 'True', reason: 'Asleep' },
    Routable: { status: 'True', reason: 'Held' },
    Progressing: { status: 'False', reason: 'Complete' },
    Degraded: { status: 'False' },
    Ready: { status: 'True', reason: 'Asleep', message: /the first request starts one/ },
  })
  t.equal(readyOf(sleeper(1)), 'True/Waking')
  const isUnseen = { observedGeneration: 0, readyReplicas: 0, availableReplicas: 0 }
  const unseen = modelDeployment({ replicas: 1, status: isUnseen })
  t.equal(readyOf(sleeper(1, { deployment: unseen })), 'True/Waking', 'from the first moment')
  t.equal(readyOf(modelWorld({ fields })), 'True/Ready')
  t.end()
})

await t.test('it is not ready where no request would be answered', (t) => {
  for (const [world, expected] of [
    [sleeper(0, { routers: [] }), 'False/NoRouters'],
    [sleeper(0, { accepted: [] }), 'False/ScaledToZero'],
    [sleeper(0, { before: {} }), 'False/ScaledToZero'],
    [sleeper(1, { before: {} }), 'False/PodsNotReady'],
    [
      sleeper(0, { routers: [{ pod: 'r', error: new ServeError('POD_UNREACHABLE', 'r: away') }] }),
      'False/RouterUnreachable',
    ],
    [
      sleeper(0, { routers: [{ pod: 'r', served: { models: [], accepted: [] } }] }),
      'False/NotRouted',
    ],
    [
      sleeper(1, { failure: { reason: 'ModelLoadFailed', message: 'no file', pod: 'a' } }),
      'False/ModelLoadFailed',
    ],
    [{ ...sleeper(0), scaling: modelWorld().scaling }, 'False/ScaledToZero'],
  ] as const) {
    t.equal(readyOf(world), expected)
  }
  t.end()
})

await t.test('once a pod serves, it is as any other Model', (t) => {
  const world = sleeper(1, { pods: [modelPod('a')], deployment: modelDeployment() })
  t.match(conditionsOfModel(world), {
    WorkloadAvailable: { reason: 'Available' },
    Routable: { reason: 'Routed' },
    Ready: { status: 'True', reason: 'Ready' },
  })
  t.match(summarize(sleeper(0), NOW + 1000).conditions, [{ lastTransitionTime: toTime(NOW) }])
  t.end()
})

import t from 'tap'
import { modelDeployment, modelWorld } from '../../testing/model-world.ts'
import { conditionsOfModel } from './summarize.ts'

/** The conditions of a Model that is suspended, and has so many pods left. */
function conditionsWith(pods: number) {
  const deployment = modelDeployment({ replicas: 0, status: { replicas: pods } })
  const world = modelWorld({ fields: { suspend: true }, deployment })
  return conditionsOfModel(pods > 0 ? world : { ...world, pods: [] })
}

await t.test('a Model that is suspended is not ready, and says why', async (t) => {
  t.match(conditionsWith(0), {
    WorkloadAvailable: { status: 'False', reason: 'Suspended' },
    Suspended: { status: 'True', reason: 'Suspended' },
    Ready: { status: 'False', reason: 'Suspended', message: /^spec\.suspend: / },
  })
})

await t.test('it is suspended once its last pod has ended its requests', async (t) => {
  t.match(conditionsWith(1), {
    Progressing: { status: 'True', reason: 'RollingOut' },
    Suspended: { status: 'False', reason: 'Suspending', message: /: 1 pod left$/ },
    Ready: { status: 'False', reason: 'Suspended' },
  })
})

import t from 'tap'
import { modelDeployment } from '../../testing/model-world.ts'
import { findPodTrouble } from './router-pods.ts'

const failed = {
  type: 'ReplicaFailure',
  status: 'True' as const,
  reason: 'FailedCreate',
  message: 'exceeded quota',
}
const router = (readyReplicas: number, conditions = [failed]) =>
  modelDeployment({ status: { readyReplicas, conditions } })

await t.test('a router of which no pod can be made is in trouble', async (t) => {
  t.same(findPodTrouble(router(0)), { reason: 'FailedCreate', message: 'exceeded quota' })
})

await t.test('one that serves, that is still starting, or that is not there, is not', async (t) => {
  t.equal(findPodTrouble(router(1)), undefined)
  t.equal(findPodTrouble(router(0, [])), undefined)
  t.equal(findPodTrouble(undefined), undefined)
})

// needs: apiserver
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { conditionOf, isModelReady, openModelCluster } from '../../testing/model-cluster.ts'

const skip = withoutKube('kube-controller-manager', 'kube-scheduler')

/** As many as a controller has slots. */
const MUTE = Array.from({ length: 8 }, (_, at) => `mute-${at}`)

await t.test('pods that are asked and never answer', { skip }, async (t) => {
  // No question times out during the test.
  const cluster = await openModelCluster(t, { patienceMs: 3_600_000 })
  const namespace = await cluster.namespace()
  for (const name of MUTE) cluster.plays.set(name, { kind: 'mute' })
  for (const name of MUTE) {
    await cluster.applyModel(namespace, name, { scaling: { provider: 'None' } })
  }
  await cluster.player.untilUnanswered(MUTE.length)

  await t.test('Models of another namespace become ready', async (t) => {
    const other = await cluster.namespace()
    await cluster.applyModel(other, 'yolo')
    const model = await cluster.untilModel(other, 'yolo', isModelReady)
    t.equal(conditionOf(model, 'Routable'), 'True/Routed')
  })

  await t.test('and their own Models are not said to be', async (t) => {
    for (const name of MUTE) {
      const model = await cluster.untilModel(namespace, name, () => true)
      t.not(conditionOf(model, 'Routable'), 'True/Routed')
      t.notOk(isModelReady(model))
    }
  })
})

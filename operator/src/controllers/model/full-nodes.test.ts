import type { ModelSpec } from '@tutti/api'
import t from 'tap'
import { modelDeployment, modelPod } from '../../testing/model-world.ts'
import { explainFull, type PodRollout, replacesFirst } from './full-nodes.ts'

const DEVICE = '0/1 nodes are available: 1 Insufficient nvidia.com/gpu.'
const CLAIM = '0/1 nodes are available: 1 cannot allocate all claims.'

const waiting = (message: string, reason = 'Unschedulable') => {
  const scheduled = { type: 'PodScheduled', status: 'False' as const, reason, message }
  const { pod } = modelPod('new', { status: { phase: 'Pending', conditions: [scheduled] } })
  return { ...pod, spec: {} }
}
const OLD = modelPod('old', { isCurrent: false }).pod
/** A rollout with one old pod and one that is new. */
const ROLLING = modelDeployment({ status: { replicas: 2, updatedReplicas: 1 } })

const rollout = (o: Partial<PodRollout> = {}): PodRollout => ({
  rollout: { whenFull: 'Replace' },
  deployment: ROLLING,
  template: 't1',
  pods: [OLD, waiting(DEVICE)],
  ...o,
})
const surging = (maxSurge: number, of = ROLLING) => ({ ...of, spec: { ...of.spec, maxSurge } })

const CASES: readonly (readonly [string, Partial<PodRollout>, boolean])[] = [
  ['no device', {}, true],
  ['no device of a claim', { pods: [OLD, waiting(CLAIM)] }, true],
  ['too little memory', { pods: [OLD, waiting('0/1 nodes: 1 Insufficient memory.')] }, false],
  ['a gate of scheduling', { pods: [OLD, waiting(DEVICE, 'SchedulingGated')] }, false],
  ['no old pod that has a node', { pods: [waiting(DEVICE)] }, false],
  ['the Model waits', { rollout: { whenFull: 'Wait' } }, false],
  ['the Model says nothing', { rollout: undefined }, false],
  ['no rollout, but more pods than devices', { deployment: modelDeployment() }, false],
  ['no Deployment yet', { deployment: undefined }, false],
  ['a pod was taken away before', { deployment: surging(0), pods: [OLD] }, true],
  ['a rollout that surges', { deployment: surging(1), pods: [OLD] }, false],
  ['one that is complete', { deployment: surging(0, modelDeployment()), pods: [] }, false],
  ['a new template comes meanwhile', { deployment: surging(0), template: 't2' }, true],
]

await t.test('an old pod goes first only where a new one finds no device', async (t) => {
  for (const [name, o, wanted] of CASES) t.equal(replacesFirst(rollout(o)), wanted, name)
})

await t.test('the failure says what to do', async (t) => {
  const failure = { reason: 'Unschedulable', message: DEVICE, pod: 'new' }
  const explained = (whenFull: NonNullable<ModelSpec['rollout']>['whenFull']) =>
    explainFull(failure, rollout({ rollout: whenFull && { whenFull } }))
  for (const whenFull of [undefined, 'Wait'] as const) {
    t.match(explained(whenFull), {
      reason: 'NoFreeDevice',
      pod: 'new',
      message: /Insufficient nvidia\.com\/gpu\. old pods keep .* set rollout\.whenFull: Replace/,
    })
  }
  t.match(explained('Replace'), { message: /an old pod is taken away first$/ })
  t.equal(explainFull(failure, rollout({ deployment: modelDeployment() })), failure)
  const other = { ...failure, reason: 'ErrImagePull' }
  t.equal(explainFull(other, rollout()), other)
  t.equal(explainFull(undefined, rollout()), undefined)
})

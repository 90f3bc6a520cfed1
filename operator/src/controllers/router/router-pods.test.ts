import type { ContainerStatus } from '@tutti/kube'
import t from 'tap'
import { containerStatus, modelDeployment, modelPod } from '../../testing/model-world.ts'
import { findPodTrouble } from './router-pods.ts'

const failed = {
  type: 'ReplicaFailure',
  status: 'True' as const,
  reason: 'FailedCreate',
  message: 'exceeded quota',
}
const router = (readyReplicas: number, conditions = [failed]) =>
  modelDeployment({ status: { readyReplicas, conditions } })

/** A router's pod whose container is in a state. */
function pod(name: string, state: ContainerStatus['state'], lastState: object = {}) {
  const containerStatuses = [containerStatus({ ready: false, state, lastState })]
  return modelPod(name, { status: { phase: 'Pending', containerStatuses } }).pod
}

/** One that was started again so often. */
function crashed(state: ContainerStatus['state'], lastState: object, restartCount = 2) {
  const containerStatuses = [containerStatus({ ready: false, restartCount, state, lastState })]
  return modelPod('b', { status: { phase: 'Running', containerStatuses } }).pod
}

const absent = { waiting: { reason: 'ErrImageNeverPull', message: 'image "x" is not present' } }
const ended = { terminated: { exitCode: 1, reason: 'Error', message: 'no broker' } }

await t.test('a router of which no pod can be made is in trouble', async (t) => {
  t.same(findPodTrouble(router(0), []), {
    reason: 'FailedCreate',
    message: 'Deployment "tutti-router": exceeded quota',
  })
})

await t.test('so is one whose pods cannot run, by the first of them', async (t) => {
  t.same(findPodTrouble(router(0, []), [pod('b', ended), pod('a', absent)]), {
    reason: 'ErrImageNeverPull',
    message: 'Deployment "tutti-router": pod "a", container "main": image "x" is not present',
  })
  t.match(findPodTrouble(router(0, []), [pod('b', ended)]), {
    reason: 'Error',
    message: /no broker$/,
  })
})

await t.test('a router that serves says why its next pods do not come', async (t) => {
  const pods = [modelPod('a').pod, pod('b', absent)]
  t.match(findPodTrouble(router(1, []), pods), { reason: 'ErrImageNeverPull' })
  t.match(findPodTrouble(router(1), []), { reason: 'FailedCreate' })
  const crashing = { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 40s' } }
  t.match(findPodTrouble(router(1, []), [pod('b', crashing, ended)]), {
    reason: 'CrashLoopBackOff',
    message: /no broker$/,
  })
})

await t.test('the message does not change with each attempt', async (t) => {
  const image = 'registry.example/router:next'
  const pulling = { waiting: { reason: 'ErrImagePull', message: 'not found' } }
  const backOff = `Back-off pulling image "${image}": ErrImagePull: not found`
  const waiting = { waiting: { reason: 'ImagePullBackOff', message: backOff } }
  const told = findPodTrouble(router(1, []), [pod('b', pulling)])
  t.match(told, { reason: 'ErrImagePull', message: /: not found$/ })
  t.same(findPodTrouble(router(1, []), [pod('b', waiting)]), told)

  const ran = { startedAt: '2026-01-01T00:00:00Z', finishedAt: '2026-01-01T00:09:59Z' }
  const short = { terminated: { ...ended.terminated, ...ran } }
  const resting = { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 40s' } }
  const looping = findPodTrouble(router(1, []), [crashed(resting, short)])
  t.match(looping, { reason: 'CrashLoopBackOff', message: /no broker$/ })
  const running = { running: { startedAt: '2026-01-01T00:10:00Z' } }
  t.same(findPodTrouble(router(1, []), [crashed(running, short)]), looping)
  t.same(findPodTrouble(router(1, []), [crashed(short, {})]), looping)
  t.equal(findPodTrouble(router(1, []), [crashed(running, short, 1)]), undefined)
  const long = { terminated: { ...short.terminated, finishedAt: '2026-01-01T00:10:00Z' } }
  t.equal(findPodTrouble(router(1, []), [crashed(running, long)]), undefined)
})

await t.test(
  'one that serves and begins again, that is starting, or is not there, is not',
  async (t) => {
    t.equal(findPodTrouble(router(1, []), [modelPod('a').pod, pod('b', ended)]), undefined)
    t.equal(findPodTrouble(router(0, []), [pod('a', {})]), undefined)
    t.equal(findPodTrouble(undefined, []), undefined)
    const leaving = pod('a', absent)
    const metadata = { ...leaving.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' }
    t.equal(findPodTrouble(router(0, []), [{ ...leaving, metadata }]), undefined)
  },
)

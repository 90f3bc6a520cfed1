import type { PlainObject } from '@tutti/kube/testing'
import { now, type PodContainer } from './pod-container.ts'
import type { PodRun } from './pod-run.ts'

/** The status of a pod as the kubelet writes it: its own conditions only, as a strategic merge patch wants them. */
export function toPodStatus(pod: PlainObject, run: PodRun): PlainObject {
  const { phase, podIp, startTime } = run
  return {
    phase,
    hostIP: '127.0.0.1',
    podIP: podIp,
    podIPs: [{ ip: podIp }],
    startTime,
    conditions: toConditions(pod, run),
    containerStatuses: run.containers.map((one) => toContainerStatus(pod, one, one.isReady)),
    ...(run.initContainers.length > 0 && {
      initContainerStatuses: run.initContainers.map((one) => {
        return toContainerStatus(pod, one, one.state['terminated']?.exitCode === 0)
      }),
    }),
  }
}

function toContainerStatus(pod: PlainObject, container: PodContainer, ready: boolean): PlainObject {
  const { spec, state, lastState, isStarted, restartCount } = container
  return {
    name: spec['name'],
    image: spec['image'],
    imageID: spec['image'],
    containerID: `process://${pod['metadata'].uid}/${spec['name']}/${restartCount}`,
    state,
    lastState,
    ready,
    started: isStarted,
    restartCount,
  }
}

function toConditions(pod: PlainObject, run: PodRun): readonly PlainObject[] {
  const { conditions: before = [] } = pod['status'] ?? {}
  const statusOf = (type: string): string | undefined =>
    before.find((condition: PlainObject) => condition['type'] === type)?.status
  const unready = run.containers.filter(({ isReady }) => !isReady).map(({ spec }) => spec['name'])
  const areReady = run.phase === 'Running' && unready.length === 0
  const shut = (pod['spec'].readinessGates ?? [])
    .map(({ conditionType }: PlainObject) => conditionType)
    .filter((type: string) => statusOf(type) !== 'True')
  const reasons = areReady ? toReason('ReadinessGatesNotReady', shut) : undefined
  const lacking = toReason('ContainersNotReady', unready)
  const wanted = [
    toCondition('Initialized', run.isInitialized),
    toCondition('ContainersReady', areReady, lacking),
    toCondition('Ready', areReady && shut.length === 0, reasons ?? lacking),
  ]
  return wanted.map((condition) => {
    const known = before.find(({ type }: PlainObject) => type === condition['type'])
    const isSame = known?.status === condition['status']
    return { ...condition, lastTransitionTime: isSame ? known.lastTransitionTime : now() }
  })
}

function toCondition(type: string, isTrue: boolean, otherwise?: PlainObject): PlainObject {
  // A merge leaves what is absent as it was: null takes it away.
  const none = { reason: null, message: null }
  return { type, status: isTrue ? 'True' : 'False', ...none, ...(!isTrue && otherwise) }
}

function toReason(reason: string, names: readonly string[]): PlainObject | undefined {
  return names.length === 0 ? undefined : { reason, message: `not yet: ${names.join(', ')}` }
}

import type { LastFailure, ModelSpec } from '@tutti/ensemble'
import type { ContainerStatus, Deployment, Pod, PodCondition } from '@tutti/kube'
import { isAlive, statusOf } from '../../pods/pod-state.ts'
import { FETCH } from '../../resources/model-artifacts.ts'
import { failureOfDeployment } from '../deployment-failure.ts'
import { isObserved, numbersOf } from './deployment-state.ts'
import { lastWordsOf } from './last-words.ts'
import { withLoadHint } from './load-hint.ts'
import { isOfTemplate, type ModelPod } from './model-pods.ts'

/** What went wrong, without the time when it was seen. */
export type Failure = Omit<LastFailure, 'time'>

/** What is in the way of a container, of those things that Kubernetes calls waiting. */
const WAITING: ReadonlySet<string> = new Set([
  'ImagePullBackOff',
  'ErrImagePull',
  'InvalidImageName',
  'ErrImageNeverPull',
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
])

/**
 * What is wrong with the pods of a Model now, the most telling of it: pods that live come first, then those of the newest
 * template. Pure.
 *
 * @param wish - the Model's spec, and the digest of the template that it wants: pods of another were made from another spec, of a
 *   Model that was edited while it is paused, too.
 * @returns undefined if nothing is.
 */
export function findFailure(
  pods: readonly ModelPod[],
  deployment: Deployment | undefined,
  wish: { readonly spec?: Pick<ModelSpec, 'storageUri'>; readonly template?: string } = {},
): Failure | undefined {
  // Kubernetes keeps a pod that was evicted, for ever as a rule: it says nothing once others do its work.
  const isReplaced = deployment !== undefined && hasAllPods(deployment)
  const telling = pods.filter(({ pod }) => isAlive(pod) || (hasFailed(pod) && !isReplaced))
  const ordered = telling.toSorted((one, other) => rankOf(one).localeCompare(rankOf(other), 'en'))
  for (const pod of ordered) {
    const failure = failureOf(pod)
    if (failure === undefined) continue
    const storageUri = isOfTemplate(pod.pod, wish.template) ? wish.spec?.storageUri : undefined
    return { ...failure, message: withLoadHint(failure.message, storageUri) }
  }
  return failureOfDeployment(deployment)
}

function rankOf({ pod, isCurrent }: ModelPod): string {
  return `${isAlive(pod) ? 0 : 1} ${isCurrent ? 0 : 1} ${pod.metadata.name}`
}

function hasAllPods(deployment: Deployment): boolean {
  const { wanted, available } = numbersOf(deployment)
  return isObserved(deployment) && available >= wanted
}

function hasFailed({ metadata, status }: Pod): boolean {
  return status?.phase === 'Failed' && metadata.deletionTimestamp === undefined
}

function failureOf(modelPod: ModelPod): Failure | undefined {
  const { pod } = modelPod
  return (
    unscheduled(pod) ??
    failed(pod) ??
    lost(pod) ??
    first(pod.status?.initContainerStatuses, (status) => ofContainer(pod, status)) ??
    first(pod.status?.containerStatuses, (status) => ofContainer(pod, status)) ??
    ofLoad(modelPod)
  )
}

function first<T>(
  items: readonly T[] | undefined,
  find: (item: T) => Failure | undefined,
): Failure | undefined {
  for (const item of items ?? []) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

function unscheduled(pod: Pod): Failure | undefined {
  const condition = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (condition?.status !== 'False' || condition.reason !== 'Unschedulable') return undefined
  return { reason: 'Unschedulable', message: condition.message ?? '', pod: pod.metadata.name }
}

/** Evicted, say. */
function failed(pod: Pod): Failure | undefined {
  const { phase, reason = 'PodFailed', message = 'the pod has failed' } = pod.status ?? {}
  return phase === 'Failed' ? { reason, message, pod: pod.metadata.name } : undefined
}

/**
 * Its node does not answer any more: Kubernetes then takes the pod out of service by itself. All that makes a pod ready, which
 * the kubelet would have taken back first, is as it was.
 */
function lost({ metadata, status, spec }: Pod): Failure | undefined {
  const { phase, conditions = [] } = status ?? {}
  const ready = conditions.find(({ type }) => type === 'Ready')
  const gates = (spec.readinessGates ?? []).map(({ conditionType }) => conditionType)
  const parts = ['ContainersReady', ...gates].map((wanted) =>
    conditions.find(({ type }) => type === wanted),
  )
  const isTaken =
    ready?.status === 'False' &&
    parts.every((part) => part?.status === 'True' && isEarlier(part, ready))
  if (phase !== 'Unknown' && !isTaken) return undefined
  const message = `node "${spec.nodeName}" does not answer`
  return { reason: 'NodeNotReady', message, pod: metadata.name }
}

/** In whole seconds: what happened in one second counts as together. */
function isEarlier(one: PodCondition, other: PodCondition): boolean {
  return Date.parse(one.lastTransitionTime ?? '') < Date.parse(other.lastTransitionTime ?? '')
}

/** A container that cannot start, or that ended and is not well again. */
function ofContainer(pod: Pod, status: ContainerStatus): Failure | undefined {
  const place = { pod: pod.metadata.name, container: status.name }
  const { reason, message = '' } = status.state?.waiting ?? {}
  if (reason !== undefined && WAITING.has(reason)) {
    return { ...place, reason, message }
  }
  const ended = findEnd(status)
  if (ended === undefined || ended.exitCode === 0) return undefined
  const { exitCode } = ended
  return {
    ...place,
    reason: reasonOf(status, ended.reason, reason === 'CrashLoopBackOff'),
    // The text of the back-off counts up; what the process said does not.
    message:
      wordsOf(ended.message) ?? `container "${status.name}" ended with exit code ${exitCode}`,
    exitCode,
  }
}

/** Without what only the log wants: conditions and events are short. */
function wordsOf(message: string | undefined): string | undefined {
  return message === undefined ? undefined : lastWordsOf(message)
}

function findEnd({ ready, state, lastState }: ContainerStatus) {
  return state?.terminated ?? (ready ? undefined : lastState?.terminated)
}

function reasonOf(status: ContainerStatus, reason: string | undefined, isOver: boolean): string {
  if (reason === 'OOMKilled') return reason
  if (status.name === FETCH) return 'FetchFailed'
  return isOver ? 'CrashLoopBackOff' : (reason ?? 'Error')
}

/** The model's own error, while the process lives: it may be ready without the model. */
function ofLoad({ pod, model }: ModelPod): Failure | undefined {
  if (model === undefined) return undefined
  const serves = model.versions.some(({ state }) => state === 'READY')
  if (serves && statusOf(pod, 'ContainersReady') === 'True') return undefined
  const error = loadErrorOf(model)
  if (error === undefined) return undefined
  const { name } = pod.metadata
  return { reason: 'ModelLoadFailed', message: error, pod: name, container: 'main' }
}

/** Why a model, or a version of it, cannot be loaded. */
export function loadErrorOf(model: NonNullable<ModelPod['model']>): string | undefined {
  if (model.reason !== '') return model.reason
  const version = model.versions.find(
    ({ state, reason }) => state === 'UNAVAILABLE' && reason !== '',
  )
  return version === undefined ? undefined : `version ${version.version}: ${version.reason}`
}

import type { Deployment, Event, Pod, Stored } from '@tutti/kube'
import { isLeaving, toPodNode } from '../status/pod-node.ts'
import { isPodReady } from '../status/read-state.ts'
import type { Cause } from '../status/tree.ts'

/** Annotation that `kubectl rollout restart` sets on the template of pods; the pods carry it too. */
export const RESTARTED_AT = 'kubectl.kubernetes.io/restartedAt'

/** The progress of a Deployment that replaces its pods. */
export interface Rollout {
  readonly state: 'done' | 'going' | 'failed'
  /** Progress in a few words, e.g. `1 of 2 new pods ready`. */
  readonly text: string
  /** Known reason for which the Deployment does not go on. */
  readonly cause?: Cause
}

/** Pods of the namespace, and warnings about them; undefined for what the user may not list. */
export interface SeenPods {
  readonly pods: readonly Stored<Pod>[] | undefined
  readonly events: readonly Event[] | undefined
}

/** Computes the progress of a Deployment by the rules of `kubectl rollout status`. Pure. */
export function rolloutOf(deployment: Stored<Deployment>, seen: SeenPods): Rollout {
  const { metadata, status } = deployment
  if ((status?.observedGeneration ?? 0) < (metadata.generation ?? 0)) {
    return { state: 'going', text: 'Kubernetes has not looked at it yet' }
  }
  const numbers = numbersOf(deployment)
  const { wanted, made, all, available } = numbers
  if (made >= wanted && all === made && available >= made) {
    return { state: 'done', text: `restarted, ${count(wanted, 'pod')}` }
  }
  const pods = seen.pods && newPodsOf(deployment, seen.pods)
  const cause = causeOf(deployment, pods, seen.events)
  const text = toText(numbers, pods)
  return { state: isLate(deployment) ? 'failed' : 'going', text, ...(cause && { cause }) }
}

function isLate({ status }: Stored<Deployment>): boolean {
  return status?.conditions?.some(({ reason }) => reason === 'ProgressDeadlineExceeded') === true
}

/** Pods of a Deployment, as its controller last counted them. */
function numbersOf({ spec, status = {} }: Stored<Deployment>) {
  const { updatedReplicas: made = 0, replicas: all = 0, availableReplicas: available = 0 } = status
  return { wanted: spec.replicas ?? 1, made, all, available }
}

/** @param pods - the new ones, if the user may list them. */
function toText(
  { wanted, made, all }: ReturnType<typeof numbersOf>,
  pods: readonly Stored<Pod>[] | undefined,
): string {
  const done = pods === undefined ? made : pods.filter(isPodReady).length
  const text = `${done} of ${count(wanted, 'new pod')} ${pods === undefined ? 'made' : 'ready'}`
  return all > made ? `${text}, ${count(all - made, 'old pod')} left` : text
}

/** Lists the pods of the latest template, without those that are being deleted. */
function newPodsOf(
  { spec }: Stored<Deployment>,
  pods: readonly Stored<Pod>[],
): readonly Stored<Pod>[] {
  const restartedAt = spec.template.metadata?.annotations?.[RESTARTED_AT]
  const labels = Object.entries(spec.selector.matchLabels ?? {})
  return pods.filter(
    (pod) =>
      !isLeaving(pod) &&
      pod.metadata.annotations?.[RESTARTED_AT] === restartedAt &&
      labels.every(([key, value]) => pod.metadata.labels?.[key] === value),
  )
}

function causeOf(
  { status }: Stored<Deployment>,
  pods: readonly Stored<Pod>[] = [],
  events: readonly Event[] = [],
): Cause | undefined {
  const refused = status?.conditions?.find(({ type }) => type === 'ReplicaFailure')
  if (refused?.status === 'True') {
    return { reason: refused.reason ?? 'FailedCreate', message: refused.message ?? '' }
  }
  for (const { name, cause } of pods.map((pod) => toPodNode(pod, { events }))) {
    if (cause !== undefined) return { ...cause, message: `pod "${name}": ${cause.message}` }
  }
  return undefined
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`
}

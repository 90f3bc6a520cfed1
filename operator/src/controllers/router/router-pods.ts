import { type Event, type Failure, failureOfPod, toFailureText } from '@tutti/kube'
import { type CachedContainer, isAlive, type PodState } from '../../pods/pod-state.ts'
import { ROUTER_NAMES } from '../../resources/router-names.ts'
import { failureOfDeployment } from '../deployment-failure.ts'
import type { DeploymentState } from '../kept-objects.ts'
import type { RouterTrouble } from './router-trouble.ts'

/**
 * Finds why the pods of a router, or those with built-ins, cannot be created or cannot run; undefined if nothing is known to be
 * wrong. Pure.
 *
 * @param name - of the Deployment; default the router's.
 */
export function findPodTrouble(
  deployment: DeploymentState | undefined,
  pods: readonly PodState[],
  events: readonly Event[] = [],
  name: string = ROUTER_NAMES.router,
): RouterTrouble | undefined {
  const isServed = (deployment?.status?.readyReplicas ?? 0) > 0
  const [failure] = pods
    .toSorted((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))
    .flatMap((pod) => failureOfRouter(pod, events) ?? [])
    .filter((one) => !isServed || !isRestarted(one))
  const found = failure ?? failureOfDeployment(deployment)
  if (found === undefined) return undefined
  const message = `Deployment "${name}": ${toFailureText(found)}`
  return { reason: found.reason, message }
}

/**
 * Finds the failure of a pod of a router or with built-ins. The result stays equal while the cause lasts, also between two pulls or
 * restarts: all Ensembles of the namespace copy it into their status.
 */
export function failureOfRouter(pod: PodState, events: readonly Event[] = []): Failure | undefined {
  const failure = isAlive(pod) ? failureOfPod(pod, undefined, events) : undefined
  if (failure === undefined) return undefined
  const { reason, message, container } = failure
  if (reason === 'ImagePullBackOff') {
    return { ...failure, reason: 'ErrImagePull', message: message.replace(BACK_OFF, '') }
  }
  const status = pod.status?.containerStatuses?.find(({ name }) => name === container)
  const isLoop = isRestarted(failure) && status !== undefined && isCrashLooping(status)
  return isLoop ? { ...failure, reason: 'CrashLoopBackOff' } : failure
}

const BACK_OFF = /^Back-off pulling image "[^"]*": ErrImagePull: /

/** Tells whether the container ended in a way after which Kubernetes starts it again at once. */
function isRestarted({ exitCode, reason }: Failure): boolean {
  return exitCode !== undefined && reason !== 'CrashLoopBackOff' && reason !== 'OOMKilled'
}

/** Length of a run after which Kubernetes starts a container again without waiting. */
const LONG_RUN_MS = 600_000

/** Tells whether a container crashes again and again, also while it runs between two waits or has just ended. */
function isCrashLooping({ restartCount, state, lastState }: CachedContainer): boolean {
  const { startedAt = '', finishedAt = '' } = state?.terminated ?? lastState?.terminated ?? {}
  return restartCount > 1 && Date.parse(finishedAt) - Date.parse(startedAt) < LONG_RUN_MS
}

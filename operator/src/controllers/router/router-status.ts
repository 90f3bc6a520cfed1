import {
  type Condition,
  MOST_PODS,
  MOST_SERVED,
  ROUTER_CONDITIONS,
  type RouterConditionType,
  type RouterStatus,
} from '@tutti/api'
import { isAlive, isReady, type PodState } from '../../pods/pod-state.ts'
import type { RouterView } from '../../pods/router-views.ts'
import { ROUTER_SELECTOR } from '../../resources/router-names.ts'
import { toSelector } from '../../runtime/children.ts'
import { cutText, toConditions } from '../../runtime/conditions.ts'
import { type ConditionState, isFalse, isTrue } from '../condition-state.ts'
import { isObserved, podCountsOf, toPodsReady } from '../deployment-state.ts'
import type { DeploymentState } from '../kept-objects.ts'
import { BUILTINS_DEGRADED, type RouterTrouble } from './router-trouble.ts'

/** The facts from which the status of a Router follows. */
export interface RouterState {
  readonly generation: number
  readonly trouble: RouterTrouble | undefined
  /** Number of pods that the Router wants; absent if its spec cannot be read. */
  readonly replicas?: number
  readonly deployment: DeploymentState | undefined
  /** True if both Services of the Router exist. */
  readonly hasServices: boolean
  readonly pods: readonly PodState[]
  /** Pods with built-ins; undefined if there are none, and none are needed. */
  readonly builtins?: BuiltinsState | undefined
  /** Answers of the ready pods. */
  readonly views: readonly RouterView[]
}

/** The facts about the pods with the built-ins of a namespace. */
export interface BuiltinsState {
  readonly deployment: DeploymentState | undefined
  readonly pods: readonly PodState[]
  /** Number of pods that are enough. */
  readonly fewest: number
  readonly trouble: RouterTrouble | undefined
}

/** Computes all conditions of a Router. Pure. */
export function conditionsOfRouter(
  state: RouterState,
): Readonly<Record<RouterConditionType, ConditionState>> {
  return {
    Progressing: checkProgressing(state),
    Degraded: checkDegraded(state),
    BuiltinsReady: checkBuiltins(state),
    Ready: checkReady(state),
  }
}

/** Pods that are ready answer requests that reach them, whatever is wrong with what is to take their place. */
function checkReady({ trouble, hasServices, pods }: RouterState): ConditionState {
  const count = pods.filter(isReady).length
  if (trouble !== undefined && (count === 0 || !hasServices)) {
    return isFalse(trouble.reason, trouble.message)
  }
  if (count === 0) return isFalse('NoRouters', 'no router pod of the namespace is ready')
  return isTrue('Ready', `${count} router ${count === 1 ? 'pod is' : 'pods are'} ready`)
}

function checkDegraded({ trouble, builtins }: RouterState): ConditionState {
  if (isLasting(trouble)) return isTrue(trouble.reason, trouble.message)
  const beside = builtins?.trouble
  if (isLasting(beside)) return isTrue(BUILTINS_DEGRADED, `${beside.reason}: ${beside.message}`)
  return isFalse('AsExpected', 'nothing is wrong')
}

function isLasting(trouble: RouterTrouble | undefined): trouble is RouterTrouble {
  return trouble !== undefined && trouble.isPassing !== true
}

function checkProgressing({ trouble, deployment, replicas }: RouterState): ConditionState {
  if (trouble?.isPassing === true) return isTrue(trouble.reason, trouble.message)
  if (trouble !== undefined) return isFalse(trouble.reason, 'the router waits until this is over')
  const wanted = replicas ?? deployment?.spec.replicas ?? 0
  const { all, done } = countPods(deployment)
  const isSeen =
    deployment !== undefined && isObserved(deployment) && deployment.spec.replicas === wanted
  if (isSeen && done >= wanted && all <= wanted) {
    return isFalse('Complete', 'all pods are up to date and ready')
  }
  return isTrue(
    'RollingOut',
    `${Math.min(done, wanted)} of ${wanted} pods are up to date and ready`,
  )
}

/** Checks the pods with built-ins. It does not count for `Ready`: Ensembles without built-ins do not need them. */
function checkBuiltins({ builtins, trouble }: RouterState): ConditionState {
  if (builtins === undefined) return isTrue('NotNeeded', 'no Ensemble needs pods for built-ins')
  const { deployment, pods, fewest, trouble: own } = builtins
  if (deployment === undefined) {
    const { reason, message } = own ?? trouble ?? PENDING
    return isFalse(reason, message)
  }
  const { wanted } = podCountsOf(deployment)
  if (wanted === 0) return isFalse('ScaledToZero', 'no pods with built-ins are wanted')
  const ready = pods.filter(isReady).length
  const text = `${ready} of ${wanted} pods with built-ins are ready`
  if (ready >= Math.max(1, Math.min(wanted, fewest))) return isTrue('Ready', text)
  return own === undefined ? isFalse('PodsNotReady', text) : isFalse(own.reason, own.message)
}

const PENDING: RouterTrouble = {
  reason: 'Pending',
  message: 'the Deployment of the built-ins is not there yet',
}

/** Counts pods. `done` are those of the newest template that are ready. */
function countPods(deployment: DeploymentState | undefined) {
  const { updatedReplicas = 0, readyReplicas = 0, replicas = 0 } = deployment?.status ?? {}
  return { all: replicas, done: Math.min(updatedReplicas, readyReplicas) }
}

/** Label selector of the pods, for the scale subresource. */
const SELECTOR = toSelector(ROUTER_SELECTOR)

/** Builds the whole status of a Router. Equal facts give an equal status, whatever the time. Pure. */
export function summarizeRouter(
  state: RouterState,
  o: {
    /** Conditions before this status. */
    readonly before: readonly Condition[] | undefined
    /** Time now, RFC 3339 in whole seconds. */
    readonly at: string
  },
): RouterStatus {
  const { generation } = state
  const pods = state.pods
    .filter(isAlive)
    .toSorted((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))
  const ready = pods.filter(isReady).length
  return {
    observedGeneration: generation,
    conditions: toConditions(ROUTER_CONDITIONS, {
      states: conditionsOfRouter(state),
      before: o.before,
      observedGeneration: generation,
      at: o.at,
    }),
    podsReady: toPodsReady(ready, state.replicas ?? state.deployment?.spec.replicas),
    replicas: pods.length,
    readyReplicas: ready,
    selector: SELECTOR,
    ...(state.builtins !== undefined && { builtins: toBuiltins(state.builtins) }),
    pods: pods.slice(0, MOST_PODS).map((pod) => {
      const { name } = pod.metadata
      const view = state.views.find((one) => one.pod === name)
      return { name, ready: isReady(pod), ...(isReady(pod) && view && toAnswer(view)) }
    }),
  }
}

function toBuiltins({ pods, deployment }: BuiltinsState): RouterStatus['builtins'] {
  const alive = pods.filter(isAlive)
  const ready = alive.filter(isReady).length
  return {
    podsReady: toPodsReady(ready, deployment?.spec.replicas),
    replicas: alive.length,
    readyReplicas: ready,
  }
}

const LONGEST_MESSAGE = 1024

function toAnswer(view: RouterView) {
  if ('error' in view) return { message: cutText(view.error.message, LONGEST_MESSAGE) }
  const served = view.served.accepted.toSorted()
  return { revisions: served.length, ...(served.length <= MOST_SERVED && { served }) }
}

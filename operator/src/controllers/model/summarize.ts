import { type LastFailure, MODEL_CONDITIONS, type ModelStatus } from '@tutti/api'
import { toFailureText } from '@tutti/kube'
import { isReady } from '../../pods/pod-state.ts'
import { urlsOf } from '../../resources/ensemble-routes.ts'
import { toSelector } from '../../runtime/children.ts'
import { cutText, toConditions, toTime } from '../../runtime/conditions.ts'
import { type ConditionState, isFalse, isTrue, isUnknown } from '../condition-state.ts'
import { isObserved, toPodsReady } from '../deployment-state.ts'
import { toStatusSignature } from '../to-signature.ts'
import { HELD_REASONS } from './asleep.ts'
import {
  type ConditionStates,
  checkAccepted,
  checkArtifacts,
  checkDegraded,
  checkSchema,
} from './model-conditions.ts'
import { currentPods, readyVersionsOf } from './model-pods.ts'
import { findStart } from './model-start.ts'
import { isLeftAsWas, type ModelWorld } from './model-world.ts'
import { checkRoutable } from './routable-condition.ts'
import {
  checkProgress,
  checkSuspended,
  checkWorkload,
  countsOf,
  isRolledOut,
} from './workload-conditions.ts'

/** Most revisions that fit into a status. */
const MOST_REVISIONS = 64
/** Characters of a failure's text; a container's last words are no longer. */
const LONGEST_FAILURE = 4096

/** Builds the whole status of a Model. Pure. If nothing changes, it does not change with `nowMs` either. */
export function summarize(world: ModelWorld, nowMs: number): ModelStatus {
  const { model, modelName, before, deployment } = world
  const at = toTime(nowMs)
  const lastFailure = toLastFailure(world, at)
  const { replicas, readyReplicas, updatedReplicas } = toReplicas(world)
  const desiredReplicas = deployment?.spec.replicas
  const observedGeneration = model.metadata.generation ?? 0
  return {
    observedGeneration,
    conditions: toConditions(MODEL_CONDITIONS, {
      states: conditionsOfModel(world),
      before: before.conditions,
      observedGeneration,
      at,
    }),
    modelName,
    ...toUrls(world),
    podsReady: toPodsReady(readyReplicas, desiredReplicas),
    replicas,
    readyReplicas,
    updatedReplicas,
    ...(desiredReplicas !== undefined && { desiredReplicas }),
    selector: toSelector(world.host.labels),
    ...toDiscovered(world),
    revisions: toRevisions(world),
    ...toResources(world),
    ...toStart(world),
    ...(lastFailure !== undefined && { lastFailure }),
    ...keepRevision(world, before),
  }
}

function toReplicas(world: ModelWorld) {
  const { host, deployment } = world
  if (!host.isItself) {
    const { all: replicas, available: readyReplicas, updated: updatedReplicas } = countsOf(world)
    return { replicas, readyReplicas, updatedReplicas }
  }
  const { replicas = 0, readyReplicas = 0, updatedReplicas = 0 } = deployment?.status ?? {}
  return { replicas, readyReplicas, updatedReplicas }
}

/** Builds the resources. Pods that are left as they are have those of the spec before. */
function toResources(world: ModelWorld): Pick<ModelStatus, 'resources'> {
  const resources = (isLeftAsWas(world) ? undefined : world.resources) ?? world.before.resources
  return resources === undefined ? {} : { resources }
}

function toStart(world: ModelWorld): Pick<ModelStatus, 'start'> {
  const start = findStart(world)
  return start === undefined ? {} : { start }
}

/** Builds the URLs at which routers serve a Model; empty before a revision is accepted. */
function toUrls({ accepted, model }: ModelWorld): Pick<ModelStatus, 'url' | 'grpcUrl'> {
  return accepted.length > 0 ? urlsOf(model.metadata.namespace ?? '', undefined) : {}
}

export function conditionsOfModel(world: ModelWorld): ConditionStates {
  const conditions = {
    Accepted: checkAccepted(world),
    ArtifactsReady: checkArtifacts(world),
    SchemaVerified: checkSchema(world),
    WorkloadAvailable: checkWorkload(world),
    Routable: checkRoutable(world),
    Progressing: checkProgress(world),
    Degraded: checkDegraded(world),
    Suspended: checkSuspended(world),
  }
  return { ...conditions, Ready: checkReady(world, conditions) }
}

type Parts = Omit<ConditionStates, 'Ready'>

/** Checks `Ready`. The first obstacle decides, or the thing that it waits for if it is a wait. */
function checkReady(world: ModelWorld, states: Parts): ConditionState {
  const found = findLacking(world, states)
  const { reason, message } = states.WorkloadAvailable
  if (found === undefined && HELD_REASONS.has(reason)) return isTrue(reason, message)
  if (found === undefined) return isTrue('Ready', 'requests are answered')
  const isWait = WAITS.has(found.reason)
  return (isWait ? causeOf(world) : undefined) ?? found
}

/** Reasons that say no more than that pods are not there yet. */
const WAITS: ReadonlySet<string> = new Set([
  'Fetching',
  'RollingOut',
  'ProgressDeadlineExceeded',
  'NoReplica',
])

function findLacking(world: ModelWorld, states: Parts): ConditionState | undefined {
  const { deployment } = world
  for (const type of ['Accepted', 'ArtifactsReady', 'SchemaVerified'] as const) {
    const { status, reason, message } = states[type]
    if (status === 'False') return isFalse(reason, message)
  }
  if (states.WorkloadAvailable.status !== 'True')
    return isFalse(...textOf(states.WorkloadAvailable))
  // Requests wait meanwhile, so that it makes no difference to them how many pods there are.
  const isHeld = HELD_REASONS.has(states.WorkloadAvailable.reason)
  if (!isHeld && deployment !== undefined && !isObserved(deployment)) {
    return isUnknown('Reconciling', states.Progressing.message)
  }
  if (!isHeld && !isRolledOut(world)) return isFalse(...textOf(states.Progressing))
  if (states.Routable.status !== 'True') return isFalse(...textOf(states.Routable))
  return undefined
}

/** Finds the failure of a pod of the newest template, or the reason why there is none; undefined if nothing is wrong. */
function causeOf({ failure, pods }: ModelWorld): ConditionState | undefined {
  if (failure === undefined) return undefined
  const isCurrent = currentPods(pods).some(({ pod }) => pod.metadata.name === failure.pod)
  if (failure.pod !== undefined && !isCurrent) return undefined
  return isFalse(failure.reason, toFailureText(failure))
}

function textOf({ reason, message }: ConditionState): [string, string] {
  return [reason, message]
}

/** Takes what was found of the model; it stays known while no pod can be asked. */
function toDiscovered({ pods, before }: ModelWorld): Pick<ModelStatus, 'signature'> {
  const found = currentPods(pods).find((pod) => readyVersionsOf(pod).length > 0)?.model?.config
  const signature = (found === undefined ? undefined : toStatusSignature(found)) ?? before.signature
  return signature === undefined ? {} : { signature }
}

function keepRevision(
  { pods }: ModelWorld,
  before: ModelStatus,
): Pick<ModelStatus, 'latestReadyRevision'> {
  const ready = currentPods(pods).find(({ pod }) => isReady(pod))
  const found = ready === undefined ? undefined : readyVersionsOf(ready).at(-1)?.revision
  const latestReadyRevision = found ?? before.latestReadyRevision
  return latestReadyRevision === undefined ? {} : { latestReadyRevision }
}

/** Lists the revisions that pods serve, ordered by version and then by revision. */
function toRevisions({ pods }: ModelWorld): NonNullable<ModelStatus['revisions']> {
  const revisions = new Map<string, { version: number; revision: string; replicas: number }>()
  for (const pod of pods) {
    for (const { version, revision } of readyVersionsOf(pod)) {
      const key = `${String(version).padStart(20, '0')} ${revision}`
      const known = revisions.get(key) ?? { version, revision, replicas: 0 }
      revisions.set(key, { ...known, replicas: known.replicas + (isReady(pod.pod) ? 1 : 0) })
    }
  }
  const sorted = [...revisions].toSorted(([one], [other]) => (one < other ? -1 : 1))
  return sorted.map(([, revision]) => revision).slice(-MOST_REVISIONS)
}

/** Builds the last failure. It stays when all is well again, and keeps its time until another failure. */
function toLastFailure({ failure, before }: ModelWorld, at: string): LastFailure | undefined {
  const known = before.lastFailure
  if (failure === undefined) return known
  const cut = { ...failure, message: cutText(failure.message, LONGEST_FAILURE) }
  const isSame =
    known?.reason === cut.reason && known.message === cut.message && known.pod === cut.pod
  return { ...cut, time: isSame && known !== undefined ? known.time : at }
}

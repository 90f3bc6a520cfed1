import {
  BUILTINS_LABEL,
  COMPONENT,
  ENSEMBLE_LABEL,
  MODEL_LABEL,
  type ModelStatus,
  modelsServedBy,
  SERVES_PREFIX,
} from '@tutti/api'
import {
  type Deployment,
  type HorizontalPodAutoscaler,
  type HttpRoute,
  type Ingress,
  type IntOrString,
  type KubeObject,
  type Pod,
  type PodStatus,
  type StatusCondition,
  type Stored,
  withoutManagedFields,
} from '@tutti/kube'
import type { ModelObject } from '../api/kinds.ts'
import type { CachedContainer, PodState } from '../pods/pod-state.ts'
import { TEMPLATE_ANNOTATION } from '../resources/step-template.ts'
import { type ChildRecord, toChildRecord } from '../runtime/child-record.ts'
import { intern } from '../runtime/intern.ts'
import { foreignWriterOf } from '../runtime/replicas-writer.ts'

/*
 * Caches keep of each kind what a reconcile reads. To read something else, keep it here first; until then it does not compile.
 */

/** Cuts a Model for the cache: only managedFields go, and equal short texts of conditions share memory. */
export function keepModel(object: Stored<ModelObject>): Stored<ModelObject> {
  const { metadata, spec, status } = withoutManagedFields(object)
  return {
    apiVersion: intern(object.apiVersion),
    kind: intern(object.kind),
    metadata,
    spec,
    ...(status !== undefined && { status: internConditions(status) }),
  }
}

function internConditions(status: ModelStatus): ModelStatus {
  const { conditions } = status
  if (!Array.isArray(conditions)) return status
  return { ...status, conditions: conditions.map(internTexts) }
}

function internTexts(condition: ModelCondition): ModelCondition {
  const { type, reason, message, lastTransitionTime } = condition
  return {
    ...condition,
    type: intern(type),
    reason: intern(reason),
    message: message.length > LONG ? message : intern(message),
    lastTransitionTime: intern(lastTransitionTime),
  }
}

type ModelCondition = NonNullable<ModelStatus['conditions']>[number]

/** Longer ones are seldom the same. */
const LONG = 200

/** Cuts a child of a kind that only the applier reads to its record. */
export function keepChild(object: Stored<KubeObject>): Stored<ChildRecord> {
  return toChildRecord(object, {})
}

/** The parts of a Deployment that reconciles read. */
export interface DeploymentState {
  readonly metadata: Pick<KubeObject['metadata'], 'name' | 'namespace' | 'generation'>
  readonly spec: {
    readonly replicas?: number
    /** Field manager of another client that owns the replicas; see foreignWriterOf. */
    readonly replicasBy?: string
    readonly paused?: boolean
    /** Pods above the desired number during a rollout. */
    readonly maxSurge?: IntOrString
    /** Pod template, of which only the annotation with its digest is kept. */
    readonly template: { readonly metadata?: Pick<KubeObject['metadata'], 'annotations'> }
  }
  readonly status?: Omit<NonNullable<Deployment['status']>, 'conditions'> & {
    /** Conditions Progressing and ReplicaFailure only. */
    readonly conditions?: readonly StatusCondition[]
  }
}

export type DeploymentRecord = ChildRecord &
  DeploymentState & {
    /** Names of the Models in the pods of its template. */
    readonly models: readonly string[]
  }

export function keepDeployment(object: Stored<Deployment>): Stored<DeploymentRecord> {
  const { spec, status } = object
  const { replicas, paused, strategy } = spec
  const maxSurge = strategy?.rollingUpdate?.maxSurge
  const replicasBy = foreignWriterOf(object)
  const digest = spec.template.metadata?.annotations?.[TEMPLATE_ANNOTATION]
  return toChildRecord(object, {
    models: modelsServedBy(object.metadata.labels).map(intern),
    spec: {
      ...(replicas !== undefined && { replicas }),
      ...(replicasBy !== undefined && { replicasBy: intern(replicasBy) }),
      ...(paused !== undefined && { paused }),
      ...(maxSurge !== undefined && { maxSurge }),
      template: digest === undefined ? {} : ofDigest(digest),
    },
    ...(status !== undefined && { status: keepStatus(status) }),
  })
}

function ofDigest(digest: string): DeploymentState['spec']['template'] {
  return { metadata: { annotations: { [TEMPLATE_ANNOTATION]: digest } } }
}

const FAILURES: ReadonlySet<string> = new Set(['Progressing', 'ReplicaFailure'])

function keepStatus({
  conditions = [],
  ...numbers
}: NonNullable<Deployment['status']>): NonNullable<DeploymentState['status']> {
  const { observedGeneration, replicas, updatedReplicas, readyReplicas, availableReplicas } =
    numbers
  const kept = conditions.filter(({ type }) => FAILURES.has(type))
  return {
    ...(observedGeneration !== undefined && { observedGeneration }),
    ...(replicas !== undefined && { replicas }),
    ...(updatedReplicas !== undefined && { updatedReplicas }),
    ...(readyReplicas !== undefined && { readyReplicas }),
    ...(availableReplicas !== undefined && { availableReplicas }),
    ...(kept.length > 0 && { conditions: kept.map(keepCondition) }),
  }
}

/** Cuts a condition to the kept fields. The message of a rollout names its ReplicaSet, and is not read. */
function keepCondition({ type, status, reason, message }: StatusCondition): StatusCondition {
  return {
    type: intern(type),
    status,
    ...(reason !== undefined && { reason: intern(reason) }),
    ...(message !== undefined && type === 'ReplicaFailure' && { message }),
  }
}

/** Labels of a pod by which it is found. */
const POD_LABELS = [COMPONENT, MODEL_LABEL, ENSEMBLE_LABEL, BUILTINS_LABEL]

function isServes(label: string): boolean {
  return label.startsWith(SERVES_PREFIX)
}

export function keepPod(object: Stored<Pod>): Stored<PodState> {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata
  const { labels, annotations, deletionTimestamp } = object.metadata
  const { nodeName, readinessGates, volumes = [] } = object.spec
  const claims = volumes.filter((volume) => volume.persistentVolumeClaim !== undefined)
  return {
    apiVersion: intern(object.apiVersion),
    kind: intern(object.kind),
    metadata: {
      name,
      uid,
      resourceVersion,
      creationTimestamp: intern(creationTimestamp),
      labels: pick(labels, [...POD_LABELS, ...Object.keys(labels ?? {}).filter(isServes)]),
      annotations: pick(annotations, [TEMPLATE_ANNOTATION]),
      ...(namespace !== undefined && { namespace: intern(namespace) }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    },
    spec: {
      ...(nodeName !== undefined && { nodeName: intern(nodeName) }),
      ...(readinessGates !== undefined && { readinessGates }),
      ...(claims.length > 0 && { volumes: claims }),
    },
    ...(object.status !== undefined && { status: keepPodStatus(object.status) }),
  }
}

function pick(
  texts: Readonly<Record<string, string>> = {},
  names: readonly string[],
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const text = texts[name]
      return text === undefined ? [] : [[name, intern(text)]]
    }),
  )
}

function keepPodStatus(status: PodStatus): NonNullable<PodState['status']> {
  const { phase, reason, message, podIP } = status
  const { conditions, containerStatuses, initContainerStatuses } = status
  return {
    ...(phase !== undefined && { phase }),
    ...(reason !== undefined && { reason }),
    ...(message !== undefined && { message }),
    ...(podIP !== undefined && { podIP }),
    ...(conditions !== undefined && { conditions: conditions.map(keepPodCondition) }),
    ...(containerStatuses !== undefined && {
      containerStatuses: containerStatuses.map(keepContainer),
    }),
    ...(initContainerStatuses !== undefined && {
      initContainerStatuses: initContainerStatuses.map(keepContainer),
    }),
  }
}

function keepPodCondition(condition: StatusCondition): StatusCondition {
  const { type, status, reason, message, lastTransitionTime } = condition
  return {
    type: intern(type),
    status,
    ...(reason !== undefined && { reason: intern(reason) }),
    ...(message !== undefined && { message }),
    ...(lastTransitionTime !== undefined && { lastTransitionTime: intern(lastTransitionTime) }),
  }
}

function keepContainer(container: CachedContainer): CachedContainer {
  const { name, ready, restartCount, containerID, state, lastState } = container
  return {
    name: intern(name),
    ready,
    restartCount,
    ...(containerID !== undefined && { containerID }),
    ...(state !== undefined && { state }),
    ...(lastState !== undefined && { lastState }),
  }
}

/** The record of an HPA with its `spec.behavior`, because a server may leave out fields of it. */
export interface AutoscalerRecord extends ChildRecord {
  readonly spec: Pick<HorizontalPodAutoscaler['spec'], 'behavior'>
}

export function keepAutoscaler(object: Stored<HorizontalPodAutoscaler>): Stored<AutoscalerRecord> {
  const { behavior } = object.spec
  return toChildRecord(object, { spec: behavior === undefined ? {} : { behavior } })
}

/** The record of an HTTPRoute with its status, which Gateways write. */
export type RouteRecord = ChildRecord & Pick<HttpRoute, 'status'>

export function keepRoute(object: Stored<HttpRoute>): Stored<RouteRecord> {
  const { status } = object
  return toChildRecord(object, status === undefined ? {} : { status })
}

/** The record of an Ingress. `isTaken` is true if an ingress controller has given it an address. */
export type IngressRecord = ChildRecord & { readonly isTaken: boolean }

export function keepIngress(object: Stored<Ingress>): Stored<IngressRecord> {
  const addresses = object.status?.loadBalancer?.ingress ?? []
  return toChildRecord(object, { isTaken: addresses.length > 0 })
}

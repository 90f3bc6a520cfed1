import type {
  V1Container,
  V1ContainerState,
  V1ContainerStatus,
  V1PodSecurityContext,
  V1PodSpec,
  V1PodStatus,
  V1Probe,
  V1Toleration,
  V1TopologySpreadConstraint,
  V1Volume,
  V1VolumeMount,
} from '@kubernetes/client-node'
import type { IntOrString, JsonObject, KubeObject, ObjectMeta } from '../object.ts'
import { defineResource } from '../resource.ts'
import type { Wire } from './wire.ts'

export interface Pod extends KubeObject {
  readonly spec: PodSpec
  readonly status?: PodStatus
}

export const POD = defineResource<Pod>('v1', 'pods', 'Pod')

/** Template of pods, of a Deployment say. */
export interface PodTemplateSpec {
  readonly metadata?: Partial<ObjectMeta>
  readonly spec: PodSpec
}

export type PodSpec = Omit<Wire<V1PodSpec>, 'containers' | 'initContainers' | 'affinity'> & {
  readonly containers: readonly Container[]
  readonly initContainers?: readonly Container[]
  readonly affinity?: JsonObject
}
export type PodStatus = Wire<V1PodStatus>
export type Container = Omit<Wire<V1Container>, 'resources'> & {
  readonly resources?: ResourceRequirements
}
export type ContainerStatus = Wire<V1ContainerStatus>
export type ContainerState = Wire<V1ContainerState>
export type Probe = Wire<V1Probe>

export interface ResourceRequirements {
  readonly requests?: Quantities
  readonly limits?: Quantities
  /** Claims of the pod that the container uses. */
  readonly claims?: readonly { readonly name: string }[]
}

export type Toleration = Wire<V1Toleration>
export type TopologySpreadConstraint = Wire<V1TopologySpreadConstraint>
export type PodSecurityContext = Wire<V1PodSecurityContext>
export type Volume = Wire<V1Volume>
export type VolumeMount = Wire<V1VolumeMount>
/** Quantities by resource, `cpu: "500m"` say. */
export type Quantities = Readonly<Record<string, IntOrString>>

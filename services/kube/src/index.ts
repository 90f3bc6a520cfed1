export type { CallOptions, Client, TokenIssuer, Watch, WriteOptions } from './client.ts'
export { createClient } from './create-client.ts'
export {
  CONTROLLER_REVISION,
  type ControllerRevision,
  DEPLOYMENT,
  type Deployment,
} from './kinds/apps.ts'
export {
  EVENT,
  type Event,
  LEASE,
  type Lease,
  type ObjectReference,
  toMicroTime,
} from './kinds/coordination.ts'
export {
  CONFIG_MAP,
  type ConfigMap,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
  type Secret,
  type Service,
  type ServiceAccount,
  type ServicePort,
} from './kinds/core.ts'
export {
  HTTP_ROUTE,
  type HttpRoute,
  INGRESS,
  INGRESS_CLASS,
  type Ingress,
  NETWORK_POLICY,
  type NetworkPolicy,
  type NetworkPolicyPeer,
  type NetworkPolicyPort,
  type ParentReference,
} from './kinds/networking.ts'
export {
  type Container,
  type ContainerStatus,
  POD,
  type Pod,
  type PodSpec,
  type PodStatus,
  type PodTemplateSpec,
  type Probe,
  type Quantities,
  type ResourceRequirements,
  type Toleration,
  type Volume,
  type VolumeMount,
} from './kinds/pod.ts'
export { ROLE, ROLE_BINDING, type Role, type RoleBinding } from './kinds/rbac.ts'
export { RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE } from './kinds/resource.ts'
export {
  HORIZONTAL_POD_AUTOSCALER,
  type HorizontalPodAutoscaler,
  POD_DISRUPTION_BUDGET,
  type PodDisruptionBudget,
} from './kinds/scaling.ts'
export {
  isAlreadyExists,
  isConflict,
  isForbidden,
  isNamespaceTerminating,
  isNotFound,
  isTerminal,
  isTransient,
  isUidMismatch,
  KubeError,
  noAnswer,
} from './kube-error.ts'
export {
  type Condition,
  type Desired,
  type IntOrString,
  type JsonObject,
  type KubeObject,
  keyOf,
  type LabelSelector,
  type ManagedFields,
  type ObjectKey,
  type ObjectMeta,
  type OwnerReference,
  type StatusCondition,
  type Stored,
  toKeyString,
} from './object.ts'
export type { FailingPod, Failure } from './pods/failing-pod.ts'
export { claimsOf, isProbeThatEnds } from './pods/pod-events.ts'
export {
  type ContainerReasons,
  failureOfPod,
  toFailureText,
} from './pods/pod-failure.ts'
export { apiVersionOf, defineResource, objectPath, type Resource } from './resource.ts'
export type { ClusterAccess, Credentials } from './transport/cluster-access.ts'
export { createTransport } from './transport/create-transport.ts'
export { type InClusterEnv, inClusterAccess } from './transport/in-cluster-access.ts'
export { toKubeError } from './transport/to-kube-error.ts'
export { unlessNotFound } from './unless-not-found.ts'
export { createReflector } from './watch/create-reflector.ts'
export type {
  Reflector,
  ReflectorEvent,
  ReflectorOptions,
  ReflectorStats,
} from './watch/reflector.ts'
export { withoutManagedFields } from './watch/trim.ts'

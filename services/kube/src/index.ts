export type {
  ApplyOptions,
  CallOptions,
  Client,
  DeleteOptions,
  JsonPatch,
  ListOptions,
  ObjectList,
  PatchOptions,
  Scale,
  SetScaleOptions,
  Watch,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from './client.ts'
export { createClient } from './create-client.ts'
export {
  CONTROLLER_REVISION,
  type ControllerRevision,
  DEPLOYMENT,
  type Deployment,
  type DeploymentCondition,
  type DeploymentSpec,
  type DeploymentStatus,
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
  NAMESPACE,
  type Namespace,
  NODE,
  type Node,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
  type Secret,
  type Service,
  type ServiceAccount,
  type ServicePort,
} from './kinds/core.ts'
export { CUSTOM_RESOURCE_DEFINITION, type CustomResourceDefinition } from './kinds/extensions.ts'
export {
  HTTP_ROUTE,
  type HttpRoute,
  type HttpRouteRule,
  INGRESS,
  type Ingress,
  type IngressBackend,
  NETWORK_POLICY,
  type NetworkPolicy,
  type NetworkPolicyPeer,
  type NetworkPolicyPort,
  type ParentReference,
} from './kinds/networking.ts'
export {
  type Container,
  type ContainerPort,
  type ContainerState,
  type ContainerStatus,
  type EnvVar,
  type HttpGetAction,
  type KeyToPath,
  type LifecycleHandler,
  POD,
  type Pod,
  type PodCondition,
  type PodSecurityContext,
  type PodSpec,
  type PodStatus,
  type PodTemplate,
  type Probe,
  type Quantities,
  type ResourceRequirements,
  type SecretVolumeSource,
  type SecurityContext,
  type Toleration,
  type TopologySpreadConstraint,
  type Volume,
  type VolumeMount,
} from './kinds/pod.ts'
export {
  type PolicyRule,
  ROLE,
  ROLE_BINDING,
  type Role,
  type RoleBinding,
  type RoleRef,
  type Subject,
} from './kinds/rbac.ts'
export {
  HORIZONTAL_POD_AUTOSCALER,
  type HorizontalPodAutoscaler,
  POD_DISRUPTION_BUDGET,
  type PodDisruptionBudget,
} from './kinds/scaling.ts'
export {
  isAlreadyExists,
  isConflict,
  isExpired,
  isForbidden,
  isNamespaceTerminating,
  isNotFound,
  isTerminal,
  isTooLarge,
  isTooMany,
  isTransient,
  isUidMismatch,
  KubeError,
  type KubeErrorCause,
} from './kube-error.ts'
export {
  type Condition,
  type DeepPartial,
  type Desired,
  type IntOrString,
  type JsonObject,
  type JsonValue,
  type KubeObject,
  keyOf,
  type LabelSelector,
  type LabelSelectorRequirement,
  type ManagedFields,
  type ObjectKey,
  type ObjectMeta,
  type OwnerReference,
  type Stored,
  type StoredMeta,
  toKeyString,
} from './object.ts'
export { apiVersionOf, type Resource } from './resource.ts'
export type { ClusterAccess, Credentials } from './transport/cluster-access.ts'
export { createTransport, type TransportOptions } from './transport/create-transport.ts'
export { type InClusterEnv, inClusterAccess } from './transport/in-cluster-access.ts'
export type {
  Method,
  Query,
  Transport,
  TransportRequest,
  TransportResponse,
  TransportStream,
} from './transport/transport.ts'
export { createReflector } from './watch/create-reflector.ts'
export type {
  Reflector,
  ReflectorEvent,
  ReflectorOptions,
  ReflectorStats,
} from './watch/reflector.ts'
export { withoutManagedFields } from './watch/trim.ts'

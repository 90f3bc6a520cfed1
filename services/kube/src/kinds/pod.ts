import type { IntOrString, JsonObject, KubeObject, ObjectMeta } from '../object.ts'
import type { Resource } from '../resource.ts'

export interface Pod extends KubeObject {
  readonly spec: PodSpec
  readonly status?: PodStatus
}

export const POD: Resource<Pod> = {
  group: '',
  version: 'v1',
  plural: 'pods',
  kind: 'Pod',
  namespaced: true,
}

/** Of a Deployment, say. */
export interface PodTemplate {
  readonly metadata?: Partial<ObjectMeta>
  readonly spec: PodSpec
}

export interface PodSpec {
  readonly containers: readonly Container[]
  readonly initContainers?: readonly Container[]
  readonly volumes?: readonly Volume[]
  readonly serviceAccountName?: string
  readonly automountServiceAccountToken?: boolean
  readonly enableServiceLinks?: boolean
  readonly nodeName?: string
  readonly nodeSelector?: Readonly<Record<string, string>>
  readonly affinity?: JsonObject
  readonly tolerations?: readonly Toleration[]
  readonly topologySpreadConstraints?: readonly TopologySpreadConstraint[]
  readonly runtimeClassName?: string
  readonly priorityClassName?: string
  readonly imagePullSecrets?: readonly { readonly name: string }[]
  readonly securityContext?: PodSecurityContext
  readonly readinessGates?: readonly { readonly conditionType: string }[]
  readonly terminationGracePeriodSeconds?: number
  readonly restartPolicy?: 'Always' | 'OnFailure' | 'Never'
  readonly hostNetwork?: boolean
  readonly hostname?: string
  readonly subdomain?: string
}

export interface Container {
  readonly name: string
  readonly image?: string
  readonly imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never'
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly workingDir?: string
  readonly env?: readonly EnvVar[]
  readonly envFrom?: readonly JsonObject[]
  readonly ports?: readonly ContainerPort[]
  readonly resources?: ResourceRequirements
  readonly volumeMounts?: readonly VolumeMount[]
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
  readonly startupProbe?: Probe
  readonly lifecycle?: { readonly preStop?: LifecycleHandler }
  readonly securityContext?: SecurityContext
  readonly terminationMessagePolicy?: 'File' | 'FallbackToLogsOnError'
  readonly terminationMessagePath?: string
  /** Of an init container that goes on beside the others. */
  readonly restartPolicy?: 'Always'
}

export interface EnvVar {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: {
    readonly fieldRef?: { readonly fieldPath: string }
    readonly secretKeyRef?: {
      readonly name: string
      readonly key: string
      readonly optional?: boolean
    }
    readonly configMapKeyRef?: {
      readonly name: string
      readonly key: string
      readonly optional?: boolean
    }
    readonly resourceFieldRef?: { readonly resource: string; readonly containerName?: string }
  }
}

export interface ContainerPort {
  readonly name?: string
  readonly containerPort: number
  readonly protocol?: 'TCP' | 'UDP'
}

/** Quantities by resource, `cpu: "500m"` say. */
export type Quantities = Readonly<Record<string, IntOrString>>

export interface ResourceRequirements {
  readonly requests?: Quantities
  readonly limits?: Quantities
}

export interface VolumeMount {
  readonly name: string
  readonly mountPath: string
  readonly subPath?: string
  readonly readOnly?: boolean
}

export interface Volume {
  readonly name: string
  readonly emptyDir?: { readonly medium?: 'Memory'; readonly sizeLimit?: string }
  readonly secret?: SecretVolumeSource
  readonly configMap?: { readonly name: string; readonly items?: readonly KeyToPath[] }
  readonly persistentVolumeClaim?: { readonly claimName: string; readonly readOnly?: boolean }
  readonly hostPath?: { readonly path: string; readonly type?: string }
  readonly projected?: JsonObject
}

export interface SecretVolumeSource {
  readonly secretName: string
  readonly items?: readonly KeyToPath[]
  readonly optional?: boolean
  /** Permission bits, a decimal number: 0o440 is 288. */
  readonly defaultMode?: number
}

export interface KeyToPath {
  readonly key: string
  readonly path: string
}

export interface Probe {
  readonly httpGet?: HttpGetAction
  readonly tcpSocket?: { readonly port: IntOrString }
  readonly grpc?: { readonly port: number; readonly service?: string }
  readonly exec?: { readonly command: readonly string[] }
  readonly initialDelaySeconds?: number
  readonly periodSeconds?: number
  readonly timeoutSeconds?: number
  readonly successThreshold?: number
  readonly failureThreshold?: number
}

export interface HttpGetAction {
  readonly path?: string
  readonly port: IntOrString
  readonly scheme?: 'HTTP' | 'HTTPS'
}

export interface LifecycleHandler {
  readonly exec?: { readonly command: readonly string[] }
  readonly httpGet?: HttpGetAction
  readonly sleep?: { readonly seconds: number }
}

export interface Toleration {
  readonly key?: string
  readonly operator?: 'Exists' | 'Equal'
  readonly value?: string
  readonly effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute'
  readonly tolerationSeconds?: number
}

export interface TopologySpreadConstraint {
  readonly maxSkew: number
  readonly topologyKey: string
  readonly whenUnsatisfiable: 'DoNotSchedule' | 'ScheduleAnyway'
  readonly labelSelector?: { readonly matchLabels?: Readonly<Record<string, string>> }
  readonly matchLabelKeys?: readonly string[]
}

export interface PodSecurityContext {
  readonly runAsNonRoot?: boolean
  readonly runAsUser?: number
  readonly runAsGroup?: number
  readonly fsGroup?: number
  readonly fsGroupChangePolicy?: 'Always' | 'OnRootMismatch'
  readonly supplementalGroups?: readonly number[]
  readonly seccompProfile?: { readonly type: 'RuntimeDefault' | 'Localhost' | 'Unconfined' }
}

export interface SecurityContext {
  readonly allowPrivilegeEscalation?: boolean
  readonly privileged?: boolean
  readonly readOnlyRootFilesystem?: boolean
  readonly runAsNonRoot?: boolean
  readonly runAsUser?: number
  readonly runAsGroup?: number
  readonly capabilities?: { readonly add?: readonly string[]; readonly drop?: readonly string[] }
  readonly seccompProfile?: { readonly type: 'RuntimeDefault' | 'Localhost' | 'Unconfined' }
}

export interface PodStatus {
  readonly phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'
  readonly reason?: string
  readonly message?: string
  readonly podIP?: string
  readonly podIPs?: readonly { readonly ip: string }[]
  readonly hostIP?: string
  readonly startTime?: string
  readonly conditions?: readonly PodCondition[]
  readonly containerStatuses?: readonly ContainerStatus[]
  readonly initContainerStatuses?: readonly ContainerStatus[]
}

export interface PodCondition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
}

export interface ContainerStatus {
  readonly name: string
  readonly ready: boolean
  readonly started?: boolean
  readonly restartCount: number
  readonly image: string
  readonly imageID: string
  readonly containerID?: string
  readonly state?: ContainerState
  readonly lastState?: ContainerState
}

export interface ContainerState {
  readonly waiting?: { readonly reason?: string; readonly message?: string }
  readonly running?: { readonly startedAt?: string }
  readonly terminated?: {
    readonly exitCode: number
    readonly signal?: number
    readonly reason?: string
    readonly message?: string
    readonly startedAt?: string
    readonly finishedAt?: string
  }
}

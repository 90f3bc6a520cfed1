import type { IntOrString, JsonObject, KubeObject, ObjectMeta, StatusCondition } from '../object.ts'
import { defineResource } from '../resource.ts'

export interface Pod extends KubeObject {
  readonly spec: PodSpec
  readonly status?: PodStatus
}

export const POD = defineResource<Pod>('v1', 'pods', 'Pod')

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
  readonly imagePullSecrets?: readonly { readonly name: string }[]
  readonly securityContext?: PodSecurityContext
  readonly readinessGates?: readonly { readonly conditionType: string }[]
  readonly terminationGracePeriodSeconds?: number
}

export interface Container {
  readonly name: string
  readonly image?: string
  readonly imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never'
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly env?: readonly {
    readonly name: string
    readonly value?: string
    readonly valueFrom?:
      | { readonly fieldRef: { readonly apiVersion: string; readonly fieldPath: string } }
      | {
          readonly secretKeyRef: {
            readonly name: string
            readonly key: string
            readonly optional: boolean
          }
        }
  }[]
  readonly ports?: readonly {
    readonly name?: string
    readonly containerPort: number
    readonly protocol?: 'TCP'
  }[]
  readonly resources?: ResourceRequirements
  readonly volumeMounts?: readonly VolumeMount[]
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
  readonly startupProbe?: Probe
  readonly lifecycle?: { readonly preStop?: { readonly sleep?: { readonly seconds: number } } }
  readonly securityContext?: {
    readonly allowPrivilegeEscalation?: boolean
    readonly readOnlyRootFilesystem?: boolean
    readonly capabilities?: { readonly drop?: readonly string[] }
  }
  readonly terminationMessagePolicy?: 'File' | 'FallbackToLogsOnError'
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
  /** `defaultMode`: permission bits, a decimal number. */
  readonly secret?: { readonly secretName: string; readonly defaultMode?: number }
  readonly persistentVolumeClaim?: { readonly claimName: string; readonly readOnly?: boolean }
  readonly hostPath?: { readonly path: string; readonly type?: string }
}

export interface Probe {
  readonly httpGet?: { readonly path?: string; readonly port: IntOrString }
  readonly periodSeconds?: number
  readonly timeoutSeconds?: number
  readonly failureThreshold?: number
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
  readonly seccompProfile?: { readonly type: 'RuntimeDefault' }
}

export interface PodStatus {
  readonly phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'
  readonly reason?: string
  readonly message?: string
  readonly podIP?: string
  readonly podIPs?: readonly { readonly ip: string }[]
  readonly startTime?: string
  readonly conditions?: readonly StatusCondition[]
  readonly containerStatuses?: readonly ContainerStatus[]
  readonly initContainerStatuses?: readonly ContainerStatus[]
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
    readonly reason?: string
    readonly message?: string
    readonly startedAt?: string
    readonly finishedAt?: string
  }
}

import type { RouterSpec } from '@tutti/api'
import type { NetworkPolicyPeer } from '@tutti/kube'
import type { FetchEnv } from './fetch-env.ts'
import type { PodDefaults } from './pod-defaults.ts'
import type { TelemetrySettings } from './telemetry-env.ts'

/** The images from which a step's is chosen; see imageOf. */
export interface StepImages {
  /** Image for engines without Python, and for the init containers of all steps. */
  readonly image: string
  /** Image for engines that need Python. */
  readonly pythonImage: string
  /** Image in place of `image` for pods with NVIDIA devices; undefined: `image` itself. */
  readonly cudaImage?: string | undefined
  /** Image in place of `pythonImage` for pods with NVIDIA devices; undefined: `pythonImage` itself. */
  readonly pythonCudaImage?: string | undefined
}

/** The settings of an installation for the pods of steps and routers. */
export interface PodSettings {
  readonly imagePullSecrets: readonly string[]
  /** True if the namespace assigns user and groups, as OpenShift does, and pods that name their own are refused. */
  readonly hasAssignedUser: boolean
}

/** The settings of all step pods in the operator's configuration. */
export interface StepPodSettings extends StepImages, PodSettings {
  readonly imagePullPolicy: 'Always' | 'IfNotPresent' | 'Never'
  /** Variables of proxies for the containers that fetch models, by name; empty: they have none. */
  readonly proxies: Readonly<Record<string, string>>
  /** Further variables of these containers, such as a token of Hugging Face; undefined: they have none. */
  readonly fetchEnv?: FetchEnv | undefined
  /** Additions of the installation to all pods of steps. */
  readonly podDefaults?: PodDefaults | undefined
  /** Cache of downloads that pods share; undefined: they have none. */
  readonly cache?: NodeCache | undefined
  /** True if the nodes mount images as volumes. */
  readonly hasImageVolumes?: boolean
  readonly nats: PodNatsSettings
  /** Values of `--metrics-config` for the pods; empty for their defaults. */
  readonly metricsConfig: readonly string[]
  /** Collector of spans; undefined: pods send none. */
  readonly telemetry?: TelemetrySettings | undefined
  /** True if Models may use folders, namespaces, ports and privileges of their nodes. */
  readonly allowsHostAccess: boolean
  readonly network: NetworkSettings
  /** Transport that the namespace's Router sets; undefined for NATS. */
  readonly transport?: StepTransport | undefined
}

/** The cache of downloads that the administrator has named. */
export interface NodeCache {
  /** A claim that each of the namespaces has, or a folder of each node. */
  readonly place:
    | { readonly kind: 'claim'; readonly claim: string }
    | { readonly kind: 'hostPath'; readonly path: string }
  /** Namespaces whose Models use it; empty for all. */
  readonly namespaces: readonly string[]
  readonly maxBytes: number
}

/** The transport of tensors and messages between routers and steps without NATS. If all goes over NATS, it is undefined. */
export type StepTransport = 'TLS' | 'TCP'

/** The port on which steps accept direct connections of routers. */
export const DIRECT_PORT = 8003

/** Reads the transport from a Router's spec; undefined for NATS. */
export function transportOf({ stepTransport = 'NATS' }: RouterSpec): StepTransport | undefined {
  return stepTransport === 'NATS' ? undefined : stepTransport
}

/** The settings with which pods connect to NATS. */
export interface PodNatsSettings {
  /** Addresses of the servers, `nats://HOST:PORT` or `tls://HOST:PORT`; at least one. */
  readonly servers: readonly string[]
  /** First token of all subjects. */
  readonly prefix: string
  /** Name of the Secret with the credential, the same in every namespace. */
  readonly secret: string
  /** True if these Secrets hold the authorities of the servers' certificates, `ca.crt`. */
  readonly hasAuthorities: boolean
}

/** The settings of the NetworkPolicies for pods. */
export interface NetworkSettings {
  /** True if the operator makes NetworkPolicies. */
  readonly isEnabled: boolean
  /** Namespace of the operator, which asks pods on their metrics port. */
  readonly operatorNamespace: string
  readonly operatorLabels: Readonly<Record<string, string>>
  /** Peers that may read metrics besides the operator and the namespace's own pods. */
  readonly scrapers: readonly NetworkPolicyPeer[]
  /** Ports of a service mesh in the pods, at which it takes connections to all of them. */
  readonly meshPorts: readonly number[]
}

/** Ports of steps and routers. */
export const PORTS = { http: 8000, grpc: 8001, metrics: 8002 } as const

/** The files of a namespace's credential, see CREDENTIAL_FILES in ../nats. */
export const NATS_CREDENTIALS = {
  credentials: 'nats.creds',
  authorities: 'ca.crt',
  directory: '/var/run/tutti/nats',
} as const

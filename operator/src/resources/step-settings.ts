import type { RouterSpec } from '@tutti/api'
import type { NetworkPolicyPeer } from '@tutti/kube'
import type { TelemetrySettings } from './telemetry-env.ts'

/** The images of steps. */
export interface StepImages {
  /** For engines that need none else, and for the init containers of all. */
  readonly image: string
  /** For engines whose descriptor names it. */
  readonly pythonImage: string
  /** In place of `image` with NVIDIA's devices; undefined for none. */
  readonly cudaImage?: string | undefined
  /** In place of `pythonImage` with them; undefined for none. */
  readonly pythonCudaImage?: string | undefined
}

/** The settings of all step pods in the operator's configuration. */
export interface StepSettings extends StepImages {
  readonly imagePullPolicy: 'Always' | 'IfNotPresent' | 'Never'
  readonly imagePullSecrets: readonly string[]
  readonly nats: NatsSettings
  /** `--metrics-config` of the pods; empty for what they do by themselves. */
  readonly metricsConfig: readonly string[]
  /** Undefined for no spans. */
  readonly telemetry?: TelemetrySettings | undefined
  /** Whether Models may use folders, namespaces, ports and privileges of their nodes. */
  readonly allowsHostAccess: boolean
  readonly network: NetworkSettings
  /** Transport of the namespace's Router. */
  readonly transport?: StepTransport | undefined
}

/** How tensors and messages travel between routers and steps without NATS. Where all of it goes over NATS, settings have none. */
export type StepTransport = 'TLS' | 'TCP'

/** Where steps then take connections of routers. */
export const DIRECT_PORT = 8003

/** Reads what a Router says of the transport. */
export function transportOf({ stepTransport = 'NATS' }: RouterSpec): StepTransport | undefined {
  return stepTransport === 'NATS' ? undefined : stepTransport
}

/** How pods reach the broker. */
export interface NatsSettings {
  /** `nats://HOST:PORT`; at least one. */
  readonly servers: readonly string[]
  /** First token of all subjects. */
  readonly prefix: string
  /** Name of the Secret of every namespace with its credential. */
  readonly secret: string
  /** Whether these Secrets hold the authorities of the servers, `ca.crt`. */
  readonly hasAuthorities: boolean
}

/** Who may reach pods. */
export interface NetworkSettings {
  /** False: no NetworkPolicies. */
  readonly isEnabled: boolean
  /** Namespace of the operator, which asks pods on their metrics port. */
  readonly operatorNamespace: string
  readonly operatorLabels: Readonly<Record<string, string>>
  /** Others who may read metrics. */
  readonly scrapers: readonly NetworkPolicyPeer[]
}

/** Ports of steps and routers. */
export const PORTS = { http: 8000, grpc: 8001, metrics: 8002 } as const

/** The files of a namespace's credential, see CREDENTIAL_FILES in ../nats. */
export const NATS_CREDENTIALS = {
  credentials: 'nats.creds',
  authorities: 'ca.crt',
  directory: '/var/run/tutti/nats',
} as const

import { type RouterConsole, type RouterSpec, toBytes, toMilliseconds } from '@tutti/api'
import type { Container, Deployment, Desired, PodSpec } from '@tutti/kube'
import { toPlain } from './plain.ts'
import { EDGE_PORTS, ROUTER_LABELS, ROUTER_NAMES, ROUTER_SELECTOR } from './router-names.ts'
import {
  containerPorts,
  directArgs,
  NATS_MOUNT,
  natsCredentialArgs,
  natsServerArgs,
  natsVolume,
  ourContainer,
  ourPodSpec,
  probe,
  TMP_MOUNT,
  TMP_VOLUME,
} from './serving-pod.ts'
import { type NetworkSettings, PORTS, type PodNatsSettings, transportOf } from './step-settings.ts'
import { type TelemetrySettings, telemetryEnv } from './telemetry-env.ts'

/** The settings of all routers in the operator's configuration. */
export interface RouterDefaults {
  readonly image: string
  readonly imagePullPolicy: 'Always' | 'IfNotPresent' | 'Never'
  readonly imagePullSecrets: readonly string[]
  /** True if a Router may choose another image. */
  readonly allowsImage: boolean
  readonly replicas: number
  /** Console for a Router whose spec has no `console`. */
  readonly console: RouterConsole
  readonly nats: PodNatsSettings
  /** Values of `--metrics-config` for routers; see StepPodSettings. */
  readonly metricsConfig: readonly string[]
  readonly telemetry?: TelemetrySettings | undefined
  readonly network: NetworkSettings
}

/** The facts from which the children of a Router are built. */
export interface RouterParts {
  readonly namespace: string
  readonly defaults: RouterDefaults
  readonly spec: RouterSpec
  /** True if another client writes the replicas of the Deployment, so that the operator leaves them. */
  readonly leavesReplicas?: boolean
}

/** Port of the console, on the loopback of a pod: who may forward ports of pods reaches it, and no pod, Service or ingress does. */
const CONSOLE_PORT = 8003
const DRAIN = '30s'
/** Until Services and ingresses know that a pod ends; it takes requests as before meanwhile. */
const PRE_STOP_S = 5
/** For the process itself, once it has drained. */
const EXIT_S = 5
const RESOURCES = {
  requests: { cpu: '250m', memory: '512Mi' },
  limits: { memory: '2Gi' },
}

export function buildRouterDeployment(parts: RouterParts): Desired<Deployment> {
  const { namespace } = parts
  return {
    metadata: { name: ROUTER_NAMES.router, namespace, labels: ROUTER_LABELS },
    spec: {
      ...(parts.leavesReplicas !== true && { replicas: replicasOf(parts) }),
      selector: { matchLabels: ROUTER_SELECTOR },
      // A pod that goes leaves its connections, so another one is there first.
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      progressDeadlineSeconds: 600,
      revisionHistoryLimit: 3,
      template: { metadata: { labels: ROUTER_LABELS }, spec: buildPodSpec(parts) },
    },
  }
}

export function replicasOf({ spec, defaults }: RouterParts): number {
  return spec.replicas ?? defaults.replicas
}

/** Returns the console of a Router's pods: none, or which requests it may make. */
export function consoleOf({ spec, defaults }: RouterParts): RouterConsole {
  return spec.console ?? defaults.console
}

function drainSecondsOf({ spec }: RouterParts): number {
  return Math.ceil(toMilliseconds(spec.timeouts?.drain ?? DRAIN) / 1000)
}

function buildPodSpec(parts: RouterParts): PodSpec {
  const { spec, defaults } = parts
  return {
    ...ourPodSpec({
      serviceAccountName: ROUTER_NAMES.router,
      // Only here: it may read what was accepted, and who is let in.
      hasToken: true,
      graceS: PRE_STOP_S + drainSecondsOf(parts) + EXIT_S,
      imagePullSecrets: defaults.imagePullSecrets,
      labels: ROUTER_SELECTOR,
    }),
    containers: [buildContainer(parts)],
    volumes: [natsVolume(defaults.nats), TMP_VOLUME],
    ...toPlain({ nodeSelector: spec.nodeSelector, tolerations: spec.tolerations }),
  }
}

function buildContainer(parts: RouterParts): Container {
  const { spec, defaults, namespace } = parts
  const ports = {
    'edge-grpc': EDGE_PORTS.edgeGrpc,
    'edge-http': EDGE_PORTS.edgeHttp,
    grpc: PORTS.grpc,
    http: PORTS.http,
    metrics: PORTS.metrics,
  }
  const image = { image: spec.image ?? defaults.image, imagePullPolicy: defaults.imagePullPolicy }
  const container = ourContainer('main', image, { command: 'tutti-router', args: toArgs(parts) })
  const { telemetry } = defaults
  return {
    ...container,
    env: [
      ...(container.env ?? []),
      ...telemetryEnv(telemetry, { service: 'tutti-router', namespace }),
    ],
    ports: containerPorts(ports),
    resources: toPlain(spec.resources ?? RESOURCES),
    volumeMounts: [NATS_MOUNT, TMP_MOUNT],
    startupProbe: probe('/livez', { periodSeconds: 1, failureThreshold: 60 }),
    readinessProbe: probe('/readyz', { periodSeconds: 2, failureThreshold: 2 }),
    livenessProbe: probe('/livez', { periodSeconds: 10, failureThreshold: 3 }),
    lifecycle: { preStop: { sleep: { seconds: PRE_STOP_S } } },
  }
}

function toArgs(parts: RouterParts): readonly string[] {
  const { namespace, defaults, spec } = parts
  const { maxInFlightRequests, maxInFlightBytes, logVerbose } = spec
  return [
    '--kubernetes',
    '--repository-name',
    namespace,
    ...natsServerArgs(defaults.nats),
    ...natsCredentialArgs(defaults.nats),
    ...directArgs(transportOf(spec)),
    ...numberFlag('--grpc-port', PORTS.grpc),
    ...numberFlag('--http-port', PORTS.http),
    ...numberFlag('--metrics-port', PORTS.metrics),
    '--edge-secret-name',
    ROUTER_NAMES.edge,
    ...numberFlag('--edge-grpc-port', EDGE_PORTS.edgeGrpc),
    ...numberFlag('--edge-http-port', EDGE_PORTS.edgeHttp),
    ...numberFlag('--exit-timeout-secs', drainSecondsOf(parts)),
    ...numberFlag('--max-inflight-requests', maxInFlightRequests),
    ...numberFlag(
      '--max-inflight-bytes',
      maxInFlightBytes === undefined ? undefined : toBytes(maxInFlightBytes),
    ),
    ...numberFlag('--log-verbose', logVerbose),
    ...consoleArgs(consoleOf(parts)),
    ...defaults.metricsConfig.map((one) => `--metrics-config=${one}`),
  ]
}

function consoleArgs(console: RouterConsole): readonly string[] {
  if (console === 'None') return []
  return [
    ...numberFlag('--console-port', CONSOLE_PORT),
    ...(console === 'Infer' ? ['--console-infer'] : []),
  ]
}

function numberFlag(flag: string, value: number | undefined): readonly string[] {
  return value === undefined ? [] : [flag, String(value)]
}

import { type RouterConsole, type RouterSpec, toBytes, toMilliseconds } from '@tutti/api'
import type { Container, Deployment, Desired, PodSpec, PodTemplateSpec } from '@tutti/kube'
import { type Scaling, toRouterScaling } from './model-scaling.ts'
import { toPlain } from './plain.ts'
import {
  joinMetadata,
  joinResources,
  overlayAll,
  type PodDefaults,
  toRequirements,
} from './pod-defaults.ts'
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
import {
  type NetworkSettings,
  PORTS,
  type PodNatsSettings,
  type PodSettings,
  transportOf,
} from './step-settings.ts'
import { type TelemetrySettings, telemetryEnv } from './telemetry-env.ts'

/** The settings of all routers in the operator's configuration. */
export interface RouterDefaults extends PodSettings {
  readonly image: string
  readonly imagePullPolicy: 'Always' | 'IfNotPresent' | 'Never'
  /** Additions of the installation to all pods of routers. */
  readonly podDefaults?: PodDefaults | undefined
  /** True if a Router may choose another image, and containers of its `podTemplate`. */
  readonly allowsImage: boolean
  /** True if the pods of routers may use their nodes. */
  readonly allowsHostAccess: boolean
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
export interface RouterFacts {
  readonly namespace: string
  readonly defaults: RouterDefaults
  readonly spec: RouterSpec
  /** Replicas to write; absent if another client owns the number. */
  readonly replicas?: number | undefined
}

/** Port of the console, on the loopback of a pod: who may forward ports of pods reaches it, and no pod, Service or ingress does. */
const CONSOLE_PORT = 8003
const DRAIN = '30s'
/** Time until Services and ingresses know that a pod ends. The pod takes requests meanwhile. */
const PRE_STOP_S = 5
/** Time that the process gets to exit once it has drained. */
const EXIT_S = 5
/** Default resources of a pod. */
const DEFAULT_RESOURCES = {
  requests: { cpu: '250m', memory: '512Mi' },
  limits: { memory: '2Gi' },
}

export function buildRouterDeployment(facts: RouterFacts): Desired<Deployment> {
  const { namespace } = facts
  return {
    metadata: { name: ROUTER_NAMES.router, namespace, labels: ROUTER_LABELS },
    spec: {
      ...toPlain({ replicas: facts.replicas }),
      selector: { matchLabels: ROUTER_SELECTOR },
      // A pod that goes leaves its connections, so another one is there first.
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      progressDeadlineSeconds: 600,
      revisionHistoryLimit: 3,
      template: buildPodTemplate(facts),
    },
  }
}

/** Returns how the pods of a Router are scaled. */
export function scalingOfRouter({
  spec,
  defaults,
}: Pick<RouterFacts, 'spec' | 'defaults'>): Scaling {
  return toRouterScaling(spec, defaults.replicas)
}

/** Returns the console of a Router's pods: none, or which requests it may make. */
export function consoleOf({ spec, defaults }: RouterFacts): RouterConsole {
  return spec.console ?? defaults.console
}

function drainSecondsOf({ spec }: RouterFacts): number {
  return Math.ceil(toMilliseconds(spec.timeouts?.drain ?? DRAIN) / 1000)
}

function buildPodTemplate(facts: RouterFacts): PodTemplateSpec {
  const templates = [facts.defaults.podDefaults?.podTemplate, facts.spec.podTemplate]
  const annotations = joinMetadata('annotations', ...templates)
  return {
    metadata: {
      labels: { ...joinMetadata('labels', ...templates), ...ROUTER_LABELS },
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    spec: overlayAll(buildPodSpec(facts), ...templates),
  }
}

function buildPodSpec(facts: RouterFacts): PodSpec {
  const { spec, defaults } = facts
  return {
    ...ourPodSpec({
      serviceAccountName: ROUTER_NAMES.router,
      // Only here: it may read what was accepted, and who is let in.
      hasToken: true,
      graceS: PRE_STOP_S + drainSecondsOf(facts) + EXIT_S,
      settings: defaults,
      labels: ROUTER_SELECTOR,
    }),
    containers: [buildContainer(facts)],
    volumes: [natsVolume(defaults.nats), TMP_VOLUME],
    ...toPlain({ nodeSelector: spec.nodeSelector, tolerations: spec.tolerations }),
  }
}

function buildContainer(facts: RouterFacts): Container {
  const { spec, defaults, namespace } = facts
  const ports = {
    'edge-grpc': EDGE_PORTS.edgeGrpc,
    'edge-http': EDGE_PORTS.edgeHttp,
    grpc: PORTS.grpc,
    http: PORTS.http,
    metrics: PORTS.metrics,
  }
  const image = { image: spec.image ?? defaults.image, imagePullPolicy: defaults.imagePullPolicy }
  const container = ourContainer('main', image, { command: 'tutti-router', args: toArgs(facts) })
  const { telemetry } = defaults
  return {
    ...container,
    env: [
      ...(container.env ?? []),
      ...telemetryEnv(telemetry, { service: 'tutti-router', namespace }),
    ],
    ports: containerPorts(ports),
    resources: toRequirements(
      joinResources(spec.resources, defaults.podDefaults?.resources, DEFAULT_RESOURCES),
    ),
    volumeMounts: [NATS_MOUNT, TMP_MOUNT],
    startupProbe: probe('/livez', { periodSeconds: 1, failureThreshold: 60 }),
    readinessProbe: probe('/readyz', { periodSeconds: 2, failureThreshold: 2 }),
    livenessProbe: probe('/livez', { periodSeconds: 10, failureThreshold: 3 }),
    lifecycle: { preStop: { sleep: { seconds: PRE_STOP_S } } },
  }
}

function toArgs(facts: RouterFacts): readonly string[] {
  const { namespace, defaults, spec } = facts
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
    ...numberFlag('--exit-timeout-secs', drainSecondsOf(facts)),
    ...numberFlag('--max-inflight-requests', maxInFlightRequests),
    ...numberFlag(
      '--max-inflight-bytes',
      maxInFlightBytes === undefined ? undefined : toBytes(maxInFlightBytes),
    ),
    ...numberFlag('--log-verbose', logVerbose),
    ...consoleArgs(consoleOf(facts)),
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

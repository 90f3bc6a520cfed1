import type { Container, Deployment, Desired, PodSpec, Probe } from '@tutti/kube'
import { toPlain } from './plain.ts'
import { EDGE_FILE } from './router-edge.ts'
import { EDGE_PORTS, ROUTER_LABELS, ROUTER_NAMES, ROUTER_SELECTOR } from './router-names.ts'
import type { RouterSettings } from './router-settings.ts'
import { spreadPods } from './spread-pods.ts'
import {
  NATS_CREDENTIALS,
  type NatsSettings,
  type NetworkSettings,
  PORTS,
} from './step-settings.ts'

/** What the operator's configuration says about all routers. */
export interface RouterDefaults {
  readonly image: string
  readonly imagePullPolicy: 'Always' | 'IfNotPresent' | 'Never'
  readonly imagePullSecrets: readonly string[]
  readonly replicas: number
  readonly nats: NatsSettings
  readonly network: NetworkSettings
}

/** What the router of a namespace is built from. */
export interface RouterParts {
  readonly namespace: string
  readonly defaults: RouterDefaults
  readonly settings: RouterSettings
}

const USER = 65_532
const SECRET_MODE = 0o440
const EDGE_DIRECTORY = '/var/run/tutti/edge'
const DRAIN_MS = 30_000
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
      replicas: replicasOf(parts),
      selector: { matchLabels: ROUTER_SELECTOR },
      // A pod that goes leaves its connections, so another one is there first.
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      progressDeadlineSeconds: 600,
      revisionHistoryLimit: 3,
      template: { metadata: { labels: ROUTER_LABELS }, spec: buildPodSpec(parts) },
    },
  }
}

export function replicasOf({ settings, defaults }: RouterParts): number {
  return settings.replicas ?? defaults.replicas
}

function drainSecondsOf({ settings }: RouterParts): number {
  return Math.ceil((settings.drainTimeout ?? DRAIN_MS) / 1000)
}

function buildPodSpec(parts: RouterParts): PodSpec {
  const { settings, defaults } = parts
  const { imagePullSecrets } = defaults
  return {
    serviceAccountName: ROUTER_NAMES.router,
    // Only here: it may read what was accepted.
    automountServiceAccountToken: true,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: PRE_STOP_S + drainSecondsOf(parts) + EXIT_S,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: USER,
      runAsGroup: USER,
      fsGroup: USER,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    ...(imagePullSecrets.length > 0 && {
      imagePullSecrets: imagePullSecrets.map((name) => ({ name })),
    }),
    containers: [buildContainer(parts)],
    volumes: [
      { name: 'nats', secret: { secretName: NATS_CREDENTIALS.secret, defaultMode: SECRET_MODE } },
      { name: 'edge', secret: { secretName: ROUTER_NAMES.edge, defaultMode: SECRET_MODE } },
      { name: 'tmp', emptyDir: {} },
    ],
    ...spreadPods(ROUTER_SELECTOR),
    ...toPlain({ nodeSelector: settings.nodeSelector, tolerations: settings.tolerations }),
  }
}

function buildContainer(parts: RouterParts): Container {
  const { settings, defaults } = parts
  const ports = {
    'edge-grpc': EDGE_PORTS.edgeGrpc,
    'edge-http': EDGE_PORTS.edgeHttp,
    grpc: PORTS.grpc,
    http: PORTS.http,
    metrics: PORTS.metrics,
  }
  return {
    name: 'main',
    image: settings.image ?? defaults.image,
    imagePullPolicy: defaults.imagePullPolicy,
    command: ['tutti-router'],
    args: toArgs(parts),
    env: [{ name: 'HOME', value: '/tmp' }],
    ports: Object.entries(ports).map(([name, containerPort]) => ({
      name,
      containerPort,
      protocol: 'TCP',
    })),
    resources: toPlain(settings.resources ?? RESOURCES),
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      readOnlyRootFilesystem: true,
    },
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: [
      { name: 'nats', mountPath: NATS_CREDENTIALS.directory, readOnly: true },
      { name: 'edge', mountPath: EDGE_DIRECTORY, readOnly: true },
      { name: 'tmp', mountPath: '/tmp' },
    ],
    startupProbe: probe('/livez', { periodSeconds: 1, failureThreshold: 60 }),
    readinessProbe: probe('/readyz', { periodSeconds: 2, failureThreshold: 2 }),
    livenessProbe: probe('/livez', { periodSeconds: 10, failureThreshold: 3 }),
    lifecycle: { preStop: { sleep: { seconds: PRE_STOP_S } } },
  }
}

function toArgs(parts: RouterParts): readonly string[] {
  const { namespace, defaults, settings } = parts
  const { servers, prefix, hasAuthorities } = defaults.nats
  const { directory, credentials, authorities } = NATS_CREDENTIALS
  const { maxInFlightRequests, maxInFlightBytes, logVerbose } = settings
  return [
    '--kubernetes',
    '--repository-name',
    namespace,
    ...servers.flatMap((server) => ['--nats', server]),
    '--nats-prefix',
    prefix,
    '--nats-creds-file',
    `${directory}/${credentials}`,
    ...(hasAuthorities ? ['--nats-tls-ca', `${directory}/${authorities}`] : []),
    ...numberFlag('--grpc-port', PORTS.grpc),
    ...numberFlag('--http-port', PORTS.http),
    ...numberFlag('--metrics-port', PORTS.metrics),
    '--edge-file',
    `${EDGE_DIRECTORY}/${EDGE_FILE}`,
    ...numberFlag('--edge-grpc-port', EDGE_PORTS.edgeGrpc),
    ...numberFlag('--edge-http-port', EDGE_PORTS.edgeHttp),
    ...numberFlag('--exit-timeout-secs', drainSecondsOf(parts)),
    ...numberFlag('--max-inflight-requests', maxInFlightRequests),
    ...numberFlag('--max-inflight-bytes', maxInFlightBytes),
    ...numberFlag('--log-verbose', logVerbose),
  ]
}

function numberFlag(flag: string, value: number | undefined): readonly string[] {
  return value === undefined ? [] : [flag, String(value)]
}

function probe(path: string, o: Pick<Probe, 'periodSeconds' | 'failureThreshold'>): Probe {
  return { httpGet: { path, port: 'metrics' }, timeoutSeconds: 5, ...o }
}

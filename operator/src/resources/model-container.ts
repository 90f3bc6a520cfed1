import { type ModelOverrides, type ModelSpec, toMilliseconds, toModelOverrides } from '@tutti/api'
import { engineOfFormat } from '@tutti/engines'
import type { Container, ResourceRequirements, Volume, VolumeMount } from '@tutti/kube'
import { toCanonicalJson } from '../runtime/canonical.ts'
import { MODEL_DIRECTORY } from './model-artifacts.ts'
import { devicesOf } from './model-devices.ts'
import { modelImageOf } from './model-image.ts'
import { toPlain } from './plain.ts'
import {
  containerPorts,
  directArgs,
  NATS_MOUNT,
  natsCredentialArgs,
  natsServerArgs,
  natsVolume,
  ourContainer,
  probe,
  TMP_MOUNT,
  TMP_VOLUME,
} from './serving-pod.ts'
import { DIRECT_PORT, PORTS, type StepPodSettings } from './step-settings.ts'
import { telemetryEnv } from './telemetry-env.ts'

/** The name of the container that serves. */
export const MAIN = 'main'

const LOAD = '10m'
const DRAIN_MS = 30_000
/** Time until Services and routers know that a pod ends. The process takes requests meanwhile. */
const PRE_STOP_S = 2
/** Beyond the load, whose end the step itself rules: for the start of the process, and to tell why a load has failed. */
const START_S = 60
/** Time that the process gets to exit once it has drained. */
const EXIT_S = 5
/** The step gives requests in flight this share of its own time to end. */
const DRAIN_SHARE = 0.9

/** The time limits of a pod, in seconds, which follow from a Model's `timeouts`. */
export interface PodTimes {
  readonly loadS: number
  /** Seconds from SIGTERM until the process must have ended. */
  readonly exitS: number
  readonly graceS: number
}

export function podTimesOf({ timeouts }: ModelSpec): PodTimes {
  const { load = LOAD, drain } = timeouts ?? {}
  const loadMs = toMilliseconds(load)
  const drainMs = drain === undefined ? DRAIN_MS : toMilliseconds(drain)
  const exitS = Math.ceil(drainMs / 1000 / DRAIN_SHARE)
  return { loadS: Math.ceil(loadMs / 1000), exitS, graceS: PRE_STOP_S + exitS + EXIT_S }
}

export interface MainContainerOptions {
  readonly spec: ModelSpec
  /** The name by which clients call the model. */
  readonly modelName: string
  readonly namespace: string
  readonly settings: StepPodSettings
  /** Mount of the model's artifacts. */
  readonly mount: VolumeMount
}

export function buildMainContainer(o: MainContainerOptions): Container {
  const { spec, settings } = o
  const times = podTimesOf(spec)
  const isDirect = settings.transport !== undefined
  const image = { ...settings, image: modelImageOf(spec, settings) }
  const container = ourContainer(MAIN, image, { command: 'tutti-step', args: toArgs(o, times) })
  return {
    ...container,
    env: [
      ...(container.env ?? []),
      ...telemetryEnv(settings.telemetry, { service: 'tutti-step', namespace: o.namespace }),
      ...(isDirect ? [POD_IP] : []),
    ],
    ports: containerPorts({ ...PORTS, ...(isDirect && { direct: DIRECT_PORT }) }),
    resources: toResources(spec),
    volumeMounts: [
      o.mount,
      NATS_MOUNT,
      ...(usesSharedMemory(spec) ? [{ name: 'shm', mountPath: '/dev/shm' }] : []),
      TMP_MOUNT,
    ],
    startupProbe: probe('/readyz', { periodSeconds: 1, failureThreshold: times.loadS + START_S }),
    readinessProbe: probe('/readyz', { periodSeconds: 5, failureThreshold: 3 }),
    livenessProbe: probe('/livez', { periodSeconds: 10, failureThreshold: 3 }),
    lifecycle: { preStop: { sleep: { seconds: PRE_STOP_S } } },
  }
}

/** Builds the volumes of `main` without those of the artifacts. */
export function buildMainVolumes(
  spec: ModelSpec,
  { nats }: Pick<StepPodSettings, 'nats'>,
): readonly Volume[] {
  return [
    natsVolume(nats),
    ...(usesSharedMemory(spec)
      ? [{ name: 'shm', emptyDir: { medium: 'Memory' as const, sizeLimit: sharedMemoryOf(spec) } }]
      : []),
    TMP_VOLUME,
  ]
}

/** Variable with the address at which routers reach the pod. */
const POD_IP = {
  name: 'POD_IP',
  valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'status.podIP' } },
}

function toArgs(o: MainContainerOptions, times: PodTimes): readonly string[] {
  const { modelName, spec, namespace, settings } = o
  return [
    '--model-directory',
    `${modelName}=${MODEL_DIRECTORY}`,
    '--model-overrides',
    // In a fixed order of keys: the text is part of the pod template.
    `${modelName}=${toCanonicalJson(overridesOf(spec))}`,
    ...natsServerArgs(settings.nats),
    '--repository-name',
    namespace,
    // Instances that may choose execute on them then, and a pod whose devices cannot be used says so and serves nothing.
    ...Object.entries(devicesOf(spec) ?? {}).map(
      ([name, count]) => `--accelerator=${name}=${count}`,
    ),
    ...natsCredentialArgs(settings.nats),
    ...directArgs(settings.transport),
    // Brackets, as the address may be of either version.
    ...(settings.transport === undefined
      ? []
      : ['--direct-address', `[$(${POD_IP.name})]:${DIRECT_PORT}`]),
    '--grpc-port',
    String(PORTS.grpc),
    '--http-port',
    String(PORTS.http),
    '--metrics-port',
    String(PORTS.metrics),
    '--exit-timeout-secs',
    String(times.exitS),
    ...settings.metricsConfig.map((one) => `--metrics-config=${one}`),
  ]
}

/**
 * Returns the overrides of the model's configuration, and the limit of its load: the step ends a load before the pod does, and
 * says why.
 */
function overridesOf(spec: ModelSpec): ModelOverrides {
  const { load = LOAD } = spec.timeouts ?? {}
  return { ...toModelOverrides(spec), timeouts: { load } }
}

/** Tells whether the model's code may use shared memory beside the server: for loaders of data, or processes of its own. */
function usesSharedMemory({ modelFormat }: ModelSpec): boolean {
  return engineOfFormat(modelFormat.name).modules !== undefined
}

/**
 * Bounds the shared memory. It counts as memory of the container, whose limit is the bound; without a limit, a bound protects the
 * node.
 */
function sharedMemoryOf({ resources }: ModelSpec): string {
  return String(resources?.limits?.['memory'] ?? '1Gi')
}

function toResources(spec: ModelSpec): ResourceRequirements {
  const { resources = {} } = spec
  const devices = devicesOf(spec)
  if (devices === undefined) return toPlain(resources)
  return toPlain({ ...resources, limits: { ...resources.limits, ...devices } })
}

import { toMilliseconds } from '@tutti/api'
import type { Container, ResourceRequirements, VolumeMount } from '@tutti/kube'
import {
  containerPorts,
  directArgs,
  natsCredentialArgs,
  natsServerArgs,
  ourContainer,
  probe,
} from './serving-pod.ts'
import { DIRECT_PORT, PORTS, type StepPodSettings } from './step-settings.ts'
import { telemetryEnv } from './telemetry-env.ts'

/** The name of the container that serves. */
export const MAIN = 'main'

const DRAIN_MS = 30_000
/** Time until Services and routers know that a pod ends. The process takes requests meanwhile. */
const PRE_STOP_S = 2
/** Beyond the load, whose end the step itself rules: for the start of the process, and to tell why a load has failed. */
const START_S = 60
/** Time that the process gets to exit once it has drained. */
const EXIT_S = 5
/** The step gives requests in flight this share of its own time to end. */
const DRAIN_SHARE = 0.9

/** The time limits of a pod of steps, in seconds. */
export interface PodTimes {
  readonly loadS: number
  /** Seconds from SIGTERM until the process must have ended. */
  readonly exitS: number
  readonly graceS: number
}

/** Computes the time limits of a pod. @param o.drain - time for requests in flight when it ends; default 30 s. */
export function toPodTimes({
  load,
  drain,
}: {
  readonly load: string
  readonly drain: string | undefined
}): PodTimes {
  const drainMs = drain === undefined ? DRAIN_MS : toMilliseconds(drain)
  const exitS = Math.ceil(drainMs / 1000 / DRAIN_SHARE)
  const loadS = Math.ceil(toMilliseconds(load) / 1000)
  return { loadS, exitS, graceS: PRE_STOP_S + exitS + EXIT_S }
}

export interface StepContainer {
  readonly namespace: string
  readonly settings: StepPodSettings
  readonly image: string
  /** Flags that say what the step serves. */
  readonly serves: readonly string[]
  /** Devices that instances may choose, RESOURCE=COUNT. */
  readonly accelerator?: string | undefined
  readonly times: PodTimes
  readonly resources: ResourceRequirements
  readonly mounts: readonly VolumeMount[]
}

/** Builds the container that serves, of any pod of steps. */
export function buildStepContainer(o: StepContainer): Container {
  const { settings, times, namespace } = o
  const isDirect = settings.transport !== undefined
  const image = { ...settings, image: o.image }
  const container = ourContainer(MAIN, image, { command: 'tutti-step', args: toArgs(o) })
  return {
    ...container,
    env: [
      ...(container.env ?? []),
      ...telemetryEnv(settings.telemetry, { service: 'tutti-step', namespace }),
      ...(isDirect ? [POD_IP] : []),
    ],
    ports: containerPorts({ ...PORTS, ...(isDirect && { direct: DIRECT_PORT }) }),
    resources: o.resources,
    volumeMounts: o.mounts,
    startupProbe: probe('/readyz', { periodSeconds: 1, failureThreshold: times.loadS + START_S }),
    readinessProbe: probe('/readyz', { periodSeconds: 5, failureThreshold: 3 }),
    livenessProbe: probe('/livez', { periodSeconds: 10, failureThreshold: 3 }),
    lifecycle: { preStop: { sleep: { seconds: PRE_STOP_S } } },
  }
}

/** Variable with the address at which routers reach the pod. */
const POD_IP = {
  name: 'POD_IP',
  valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'status.podIP' } },
}

function toArgs({
  serves,
  accelerator,
  times,
  namespace,
  settings,
}: StepContainer): readonly string[] {
  return [
    ...serves,
    ...natsServerArgs(settings.nats),
    '--repository-name',
    namespace,
    // Instances that may choose execute on them then, and a pod whose devices cannot be used says so and serves nothing.
    ...(accelerator === undefined ? [] : [`--accelerator=${accelerator}`]),
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

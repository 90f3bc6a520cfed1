import { type ModelOverrides, type ModelSpec, toModelOverrides } from '@tutti/api'
import { engineOfFormat } from '@tutti/engines'
import type { Container, Volume, VolumeMount } from '@tutti/kube'
import { toCanonicalJson } from '../runtime/canonical.ts'
import { modelDirectory } from './model-artifacts.ts'
import { devicesOf } from './model-devices.ts'
import { modelImageOf } from './model-image.ts'
import { resourcesOfModel } from './model-resources.ts'
import { NATS_MOUNT, natsVolume, TMP_MOUNT, TMP_VOLUME } from './serving-pod.ts'
import { buildStepContainer, type PodTimes, toPodTimes } from './step-container.ts'
import type { StepPodSettings } from './step-settings.ts'

const LOAD = '10m'

/** Computes the time limits of a pod, which follow from a Model's `timeouts`. */
export function podTimesOf({ timeouts }: ModelSpec): PodTimes {
  const { load = LOAD, drain } = timeouts ?? {}
  return toPodTimes({ load, drain })
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

export function buildMainContainer({
  spec,
  modelName,
  namespace,
  settings,
  mount,
}: MainContainerOptions): Container {
  return buildStepContainer({
    namespace,
    settings,
    image: modelImageOf(spec, settings),
    serves: [
      '--model-directory',
      `${modelName}=${modelDirectory(modelName)}`,
      '--model-overrides',
      // In a fixed order of keys: the text is part of the pod template.
      `${modelName}=${toCanonicalJson(overridesOf(spec))}`,
    ],
    accelerator: devicesOf(spec)?.accelerator,
    times: podTimesOf(spec),
    resources: resourcesOfModel(spec, settings),
    mounts: [
      mount,
      NATS_MOUNT,
      ...(usesSharedMemory(spec) ? [{ name: 'shm', mountPath: '/dev/shm' }] : []),
      TMP_MOUNT,
    ],
  })
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

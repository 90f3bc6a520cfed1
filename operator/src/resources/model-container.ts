import { type ModelOverrides, type ModelSpec, toModelOverrides } from '@tutti/api'
import { engineOfFormat } from '@tutti/engines'
import type { Container, Volume, VolumeMount } from '@tutti/kube'
import { toCanonicalJson } from '../runtime/canonical.ts'
import { modelDirectory } from './model-artifacts.ts'
import { devicesOf } from './model-devices.ts'
import type { ModelFacts } from './model-facts.ts'
import { imageOf } from './model-image.ts'
import { resourcesOfGroup } from './model-resources.ts'
import type { PodGroup } from './pod-group.ts'
import { NATS_MOUNT, natsVolume, TMP_MOUNT, TMP_VOLUME } from './serving-pod.ts'
import { buildStepContainer, type PodTimes, toPodTimes } from './step-container.ts'

/** Default of `timeouts.load`. */
export const LOAD = '10m'

/** Computes the time limits of pods: the longest that the `timeouts` of a Model in them ask for. Models load at the same time. */
export function podTimesOf({ models }: Pick<PodGroup, 'models'>): PodTimes {
  const all = models.map(({ spec: { timeouts: { load = LOAD, drain } = {} } }) =>
    toPodTimes({ load, drain }),
  )
  const longest = (time: keyof PodTimes): number => Math.max(...all.map((times) => times[time]))
  return { loadS: longest('loadS'), exitS: longest('exitS'), graceS: longest('graceS') }
}

/** Builds the container that serves all Models of a group. @param mounts - those of the Models' directories. */
export function buildMainContainer(group: PodGroup, mounts: readonly VolumeMount[]): Container {
  const { namespace, settings, models, hasBuiltins } = group
  return buildStepContainer({
    namespace,
    settings,
    image: imageOf(group),
    serves: [...models.flatMap(flagsOf), ...(hasBuiltins ? ['--builtins'] : [])],
    accelerator: devicesOf(group)?.accelerator,
    times: podTimesOf(group),
    resources: resourcesOfGroup(group),
    mounts: [
      ...mounts,
      NATS_MOUNT,
      ...(usesSharedMemory(group) ? [{ name: 'shm', mountPath: '/dev/shm' }] : []),
      TMP_MOUNT,
    ],
  })
}

/** Returns the flags with which a step serves a Model. */
function flagsOf({ spec, modelName }: ModelFacts): readonly string[] {
  return [
    '--model-directory',
    `${modelName}=${modelDirectory(modelName)}`,
    '--model-overrides',
    // In a fixed order of keys: the text is part of the pod template.
    `${modelName}=${toCanonicalJson(overridesOf(spec))}`,
  ]
}

/** Builds the volumes of `main` without those of the artifacts. */
export function buildMainVolumes(group: PodGroup): readonly Volume[] {
  const sizeLimit = sharedMemoryOf(group)
  return [
    natsVolume(group.settings.nats),
    ...(usesSharedMemory(group)
      ? [{ name: 'shm', emptyDir: { medium: 'Memory' as const, sizeLimit } }]
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

/** Tells whether code of a model may use shared memory beside the server: for loaders of data, or processes of its own. */
function usesSharedMemory({ models }: PodGroup): boolean {
  return models.some(({ spec }) => engineOfFormat(spec.modelFormat.name).modules !== undefined)
}

/**
 * Bounds the shared memory. It counts as memory of the container, whose limit is the bound; without a limit, a bound protects the
 * node.
 */
function sharedMemoryOf(group: PodGroup): string {
  return String(resourcesOfGroup(group).limits?.['memory'] ?? '1Gi')
}

import type { ModelResources, ModelSpec } from '@tutti/api'
import { engineOfFormat } from '@tutti/engines'
import type { ResourceRequirements } from '@tutti/kube'
import { devicesOf } from './model-devices.ts'
import { toPlain } from './plain.ts'
import { joinResources, toRequirements } from './pod-defaults.ts'
import type { PodGroup } from './pod-group.ts'
import type { StepPodSettings } from './step-settings.ts'
import { sumResources } from './sum-resources.ts'

/** A pod without requests is the first that a full node ends, and the scheduler takes it for nothing. */
const CPU = '100m'

/** Default resources of built-in steps: requests as for a small model, and a limit of memory for large pictures. */
export const RESOURCES_OF_BUILTINS = {
  requests: { cpu: CPU, memory: '256Mi' },
  limits: { memory: '2Gi' },
}

type Settings = Pick<StepPodSettings, 'podDefaults'>

/**
 * Returns the resources of the container that serves the Models of a group, its devices among the limits. What a Model says nothing of
 * is as the installation says, or else what the engine needs with a small model. Those of several Models add up.
 */
export function resourcesOfGroup(group: PodGroup): ResourceRequirements {
  const { settings, models, spec } = group
  const ofModels = models.map((one) => join(one.spec, settings))
  const sum = sumResources(group.hasBuiltins ? [...ofModels, RESOURCES_OF_BUILTINS] : ofModels)
  const { requests, limits } = joinResources(spec.resources, sum)
  const devices = devicesOf(group)?.resources ?? {}
  const { claims } = devices
  return {
    ...toRequirements({ requests, limits: { ...limits, ...devices.limits } }),
    ...toPlain({ claims }),
  }
}

/** Returns these resources without devices, for containers that bring files: a quota may want resources of every container. */
export function resourcesOfFetch(spec: ModelSpec, settings: Settings): ResourceRequirements {
  const { requests, limits } = join(spec, settings)
  return toRequirements({ requests: withoutDevices(requests), limits: withoutDevices(limits) })
}

function join({ resources, modelFormat }: ModelSpec, { podDefaults }: Settings): ModelResources {
  const { memory } = engineOfFormat(modelFormat.name)
  return joinResources(resources, podDefaults?.resources, { requests: { cpu: CPU, memory } })
}

function withoutDevices(quantities: ModelResources['limits'] = {}): ModelResources['limits'] {
  return Object.fromEntries(Object.entries(quantities).filter(([name]) => !name.includes('/')))
}

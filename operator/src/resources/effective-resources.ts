import { EffectiveResources } from '@tutti/api'
import { engineOfFormat } from '@tutti/engines'
import type { PodTemplateSpec, ResourceRequirements } from '@tutti/kube'
import { devicesOf } from './model-devices.ts'
import type { ModelFacts } from './model-facts.ts'
import { resourcesOfGroup } from './model-resources.ts'
import type { PodGroup } from './pod-group.ts'
import { MAIN } from './step-container.ts'

type Amounts = { readonly [K in 'requests' | 'limits']: ResourceRequirements[K] | undefined }
interface Said {
  readonly requests?: object | undefined
  readonly limits?: object | undefined
}

/**
 * Tells what the container that serves the Models of a group asks for after all defaults, and where each resource comes from. Pure.
 *
 * @param podTemplate - as the operator makes pods of it. A LimitRange of the namespace may add to it.
 * @returns undefined if a podTemplate has resources that are none, which the API server refuses.
 */
export function toEffectiveResources(
  group: PodGroup,
  podTemplate: PodTemplateSpec,
): EffectiveResources | undefined {
  const main = podTemplate.spec.containers.find(({ name }) => name === MAIN)
  const { requests, limits } = main?.resources ?? {}
  const names = namesOf({ requests, limits })
  const toSource = toSources(group, { requests, limits })
  const from = [...Map.groupBy(names.toSorted(), toSource)]
    .map(([source, all]) => `${all.join(', ')}: ${source}`)
    .join('; ')
  const found = { ...(requests && { requests }), ...(limits && { limits }), from }
  return EffectiveResources.safeParse(found).data
}

function toSources(group: PodGroup, effective: Amounts): (name: string) => string {
  const { models, spec } = group
  const ours = resourcesOfGroup(group)
  const devices = namesOf(devicesOf(group)?.resources ?? {})
  return (name) => {
    const isOurs = (['requests', 'limits'] as const).every(
      (kind) => String(ours[kind]?.[name]) === String(effective[kind]?.[name]),
    )
    if (!isOurs) return 'a podTemplate'
    if (devices.includes(name)) return 'the devices of the spec'
    if (namesOf(spec.resources ?? {}).includes(name)) return 'spec.resources of the Ensemble'
    const [first, ...others] = models
    if (first !== undefined && others.length === 0) return sourceOf(first, name)
    return `the sum of ${models.map((one) => `"${one.name}"`).join(', ')}`
  }
}

/** Finds where a resource of one Model comes from. */
function sourceOf({ spec, settings: { podDefaults } }: ModelFacts, name: string): string {
  if (namesOf(spec.resources ?? {}).includes(name)) return 'spec.resources'
  if (namesOf(podDefaults?.resources ?? {}).includes(name)) return 'step.defaults of the chart'
  return `default of the engine ${engineOfFormat(spec.modelFormat.name).backend}`
}

function namesOf({ requests, limits }: Said): readonly string[] {
  return Object.keys({ ...requests, ...limits })
}

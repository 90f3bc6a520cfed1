import { EffectiveResources, type ModelSpec } from '@tutti/api'
import { engineOfFormat } from '@tutti/engines'
import type { PodTemplateSpec, ResourceRequirements } from '@tutti/kube'
import { devicesOf } from './model-devices.ts'
import { resourcesOfModel } from './model-resources.ts'
import { MAIN } from './step-container.ts'
import type { StepPodSettings } from './step-settings.ts'

type Amounts = { readonly [K in 'requests' | 'limits']: ResourceRequirements[K] | undefined }
interface Said {
  readonly requests?: object | undefined
  readonly limits?: object | undefined
}

/**
 * Tells what the container that serves a Model asks for after all defaults, and where each resource comes from. Pure.
 *
 * @param podTemplate - as the operator makes pods of it. A LimitRange of the namespace may add to it.
 * @returns undefined if a podTemplate has resources that are none, which the API server refuses.
 */
export function toEffectiveResources(
  spec: ModelSpec,
  podTemplate: PodTemplateSpec,
  settings: Pick<StepPodSettings, 'podDefaults'>,
): EffectiveResources | undefined {
  const main = podTemplate.spec.containers.find(({ name }) => name === MAIN)
  const { requests, limits } = main?.resources ?? {}
  const names = namesOf({ requests, limits })
  const sourceOf = toSources(spec, { requests, limits }, settings)
  const from = [...Map.groupBy(names.toSorted(), sourceOf)]
    .map(([source, all]) => `${all.join(', ')}: ${source}`)
    .join('; ')
  const found = { ...(requests && { requests }), ...(limits && { limits }), from }
  return EffectiveResources.safeParse(found).data
}

function toSources(
  spec: ModelSpec,
  effective: Amounts,
  settings: Pick<StepPodSettings, 'podDefaults'>,
): (name: string) => string {
  const ours = resourcesOfModel(spec, settings)
  const said: readonly (readonly [source: string, amounts: Said | undefined])[] = [
    ['the devices of the spec', devicesOf(spec)?.resources],
    ['spec.resources', spec.resources],
    ['step.defaults of the chart', settings.podDefaults?.resources],
  ]
  return (name) => {
    const isOurs = (['requests', 'limits'] as const).every(
      (kind) => String(ours[kind]?.[name]) === String(effective[kind]?.[name]),
    )
    if (!isOurs) return 'a podTemplate'
    const found = said.find(([, amounts = {}]) => namesOf(amounts).includes(name))
    return found?.[0] ?? `default of the engine ${engineOfFormat(spec.modelFormat.name).backend}`
  }
}

function namesOf({ requests, limits }: Said): readonly string[] {
  return Object.keys({ ...requests, ...limits })
}

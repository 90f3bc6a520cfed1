import type { EffectiveResources } from '@tutti/api'
import type { PodTemplateSpec, Stored } from '@tutti/kube'
import type { ModelObject } from '../../api/kinds.ts'
import { toEffectiveResources } from '../../resources/effective-resources.ts'
import { buildPodTemplate } from '../../resources/model-template.ts'
import { TEMPLATE_ANNOTATION } from '../../resources/step-template.ts'
import type { PlannedGroup, PodGroups } from './pod-groups.ts'

/** The state that the specs of a Model and of its host ask for. */
export interface DesiredModel extends PlannedGroup {
  /** True if the Model runs in the pods of another one. */
  readonly isGuest: boolean
  readonly podTemplate: PodTemplateSpec
  /** Resources of `podTemplate`. */
  readonly resources: EffectiveResources | undefined
  /** Digest of `podTemplate`. */
  readonly template: string
}

/** Derives the desired state of a Model; undefined if it has no host whose spec can be read. */
export function toDesiredModel(
  model: Stored<ModelObject>,
  groups: PodGroups,
): DesiredModel | undefined {
  const { host } = groups.placementOf(model)
  const plan = host && groups.plan(host)
  if (plan === undefined) return undefined
  const podTemplate = buildPodTemplate(plan.group)
  const template = podTemplate.metadata?.annotations?.[TEMPLATE_ANNOTATION] ?? ''
  const resources = toEffectiveResources(plan.group, podTemplate)
  return { ...plan, isGuest: host !== model, podTemplate, resources, template }
}

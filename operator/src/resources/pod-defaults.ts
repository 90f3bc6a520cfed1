import { ModelResources, PodTemplate } from '@tutti/api'
import type { PodSpec, ResourceRequirements } from '@tutti/kube'
import { z } from 'zod'
import { toPlain } from './plain.ts'
import { overlayPodSpec } from './pod-overlay.ts'

/** The additions of an installation to all pods of steps, or to all of routers. What their resources say counts more. */
export const PodDefaults = z.strictObject({
  resources: ModelResources.optional(),
  podTemplate: PodTemplate.optional(),
})
export type PodDefaults = z.infer<typeof PodDefaults>

type Quantities = Readonly<Record<string, string | number>>

/**
 * Joins resources by name. Request and limit of a name come from the first level that has one of them: Kubernetes refuses a request above
 * the limit.
 *
 * @param levels - the most important first.
 */
export function joinResources(...levels: readonly (ModelResources | undefined)[]): ModelResources {
  return levels.reduce<ModelResources>(fillIn, {})
}

function fillIn(said: ModelResources, defaults: ModelResources = {}): ModelResources {
  const known = { ...said.requests, ...said.limits }
  const lacking = (all: Quantities = {}): Quantities =>
    Object.fromEntries(Object.entries(all).filter(([name]) => !Object.hasOwn(known, name)))
  return {
    requests: { ...lacking(defaults.requests), ...said.requests },
    limits: { ...lacking(defaults.limits), ...said.limits },
  }
}

/** Returns resources as a container has them, which lists nothing that is empty. */
export function toRequirements(resources: ModelResources): ResourceRequirements {
  const all = Object.entries(resources).filter(([, said]) => Object.keys(said ?? {}).length > 0)
  return toPlain(Object.fromEntries(all))
}

/** Merges pod specs into that of the operator, one after the other. */
export function overlayAll(
  spec: PodSpec,
  ...templates: readonly (PodTemplate | undefined)[]
): PodSpec {
  return templates.reduce((merged, template) => overlayPodSpec(merged, template?.spec), spec)
}

/** Joins the labels, or the annotations, of pod templates. The later ones count. */
export function joinMetadata(
  field: 'labels' | 'annotations',
  ...templates: readonly (PodTemplate | undefined)[]
): Readonly<Record<string, string>> {
  return Object.assign({}, ...templates.map((template) => template?.metadata?.[field]))
}

import type { EffectiveResources, ModelSpec } from '@tutti/api'
import type { PodTemplateSpec, Secret, Stored } from '@tutti/kube'
import type { ModelObject } from '../../api/kinds.ts'
import { toEffectiveResources } from '../../resources/effective-resources.ts'
import { type ModelFacts, toModelFacts } from '../../resources/model-facts.ts'
import { type Scaling, toScaling } from '../../resources/model-scaling.ts'
import { buildPodTemplate } from '../../resources/model-template.ts'
import { podLabelsOf } from '../../resources/step-labels.ts'
import type { StepPodSettings } from '../../resources/step-settings.ts'
import { TEMPLATE_ANNOTATION } from '../../resources/step-template.ts'
import { credentialsDigest } from '../credentials-digest.ts'

/** The state that the spec of a Model asks for. */
export interface DesiredModel {
  readonly facts: ModelFacts
  readonly scaling: Scaling
  readonly podTemplate: PodTemplateSpec
  /** Resources of `podTemplate`. */
  readonly resources: EffectiveResources | undefined
  /** Digest of `podTemplate`. */
  readonly template: string
}

/** Derives the desired state of a Model from its spec. Pure. */
export function toDesiredModel(
  { metadata }: Stored<ModelObject>,
  spec: ModelSpec,
  o: {
    readonly settings: StepPodSettings
    /** Secret with which artifacts are fetched, if there is one. */
    readonly secret: Stored<Secret> | undefined
  },
): DesiredModel {
  const { settings, secret } = o
  const { name, namespace = '' } = metadata
  const labels = podLabelsOf(metadata.labels)
  const credentials = secret === undefined ? {} : { credentialsDigest: credentialsDigest(secret) }
  const facts = toModelFacts({ name, namespace, labels, spec, settings, ...credentials })
  const podTemplate = buildPodTemplate(facts)
  const template = podTemplate.metadata?.annotations?.[TEMPLATE_ANNOTATION] ?? ''
  const resources = toEffectiveResources(spec, podTemplate, settings)
  return { facts, scaling: toScaling(spec), podTemplate, resources, template }
}

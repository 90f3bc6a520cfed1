import type { ModelSpec } from '@tutti/ensemble'
import type { Secret, Stored } from '@tutti/kube'
import type { ModelObject } from '../../api/kinds.ts'
import { buildPodTemplate, TEMPLATE_ANNOTATION } from '../../resources/model-deployment.ts'
import { type ModelParts, toModelParts } from '../../resources/model-parts.ts'
import { type Scaling, toScaling } from '../../resources/model-scaling.ts'
import type { StepSettings } from '../../resources/step-settings.ts'
import { credentialsDigest } from './credentials-digest.ts'

/** What the spec of a Model asks for. */
export interface DesiredModel {
  readonly parts: ModelParts
  readonly scaling: Scaling
  /** Digest of the pod template. */
  readonly template: string
}

/** @param o.secret - that artifacts are fetched with, if there is one. Pure. */
export function toDesiredModel(
  { metadata: { name, namespace = '' } }: Stored<ModelObject>,
  spec: ModelSpec,
  {
    settings,
    secret,
  }: { readonly settings: StepSettings; readonly secret: Stored<Secret> | undefined },
): DesiredModel {
  const parts = toModelParts({
    name,
    namespace,
    spec,
    settings,
    ...(secret !== undefined && { credentialsDigest: credentialsDigest(secret) }),
  })
  const template = buildPodTemplate(parts).metadata?.annotations?.[TEMPLATE_ANNOTATION]
  return { parts, scaling: toScaling(spec), template: template ?? '' }
}

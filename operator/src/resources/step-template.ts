import type { PodSpec, PodTemplateSpec } from '@tutti/kube'
import { digestOf } from '../runtime/canonical.ts'

/** The annotation of a pod with the digest of its pod template. It tells which pods are of the newest template. */
export const TEMPLATE_ANNOTATION = 'tutti.dev/template'

type Texts = Readonly<Record<string, string>>

/** Builds a pod template of steps, with its own digest as annotation. */
export function toStepTemplate(o: {
  readonly labels: Texts
  readonly annotations?: Texts
  readonly spec: PodSpec
}): PodTemplateSpec {
  const { labels, annotations = {}, spec } = o
  const metadata = { labels, annotations }
  const template = digestOf({ metadata, spec })
  return {
    metadata: { labels, annotations: { ...annotations, [TEMPLATE_ANNOTATION]: template } },
    spec,
  }
}

import type { Desired, KubeObject } from '@tutti/kube'

/** Annotation with the digest of an object as it was applied. A new process reads it and does not apply the same object again. */
export const APPLIED_ANNOTATION = 'tutti.dev/applied'

/** A desired object and the digest of its canonical JSON. */
export interface DigestedObject {
  readonly desired: Desired<KubeObject>
  readonly digest: string
}

/** Returns a copy of the desired object with its digest in `APPLIED_ANNOTATION`. */
export function withMark({ desired, digest }: DigestedObject): Desired<KubeObject> {
  const { metadata } = desired
  const annotations = { ...metadata.annotations, [APPLIED_ANNOTATION]: digest }
  return { ...desired, metadata: { ...metadata, annotations } }
}

/** Returns a copy of the object without `APPLIED_ANNOTATION`, and without annotations if no other is left. */
export function withoutMark(object: Pick<KubeObject, 'metadata'>): object {
  const { metadata } = object
  const { [APPLIED_ANNOTATION]: _, ...annotations } = metadata.annotations ?? {}
  const { annotations: __, ...others } = metadata
  const isEmpty = Object.keys(annotations).length === 0
  return { ...object, metadata: isEmpty ? others : { ...others, annotations } }
}

/**
 * True if `there` has every value of `wanted`. Objects may have more members, because the server adds defaults; lists must have
 * the same length. A value that the server writes in another form (a quantity of `1000m`, say) counts as different.
 */
export function holds(there: unknown, wanted: unknown): boolean {
  if (wanted === undefined) return true
  if (Array.isArray(wanted)) {
    const elements: readonly unknown[] = Array.isArray(there) ? there : []
    return (
      elements.length === wanted.length && wanted.every((element, i) => holds(elements[i], element))
    )
  }
  if (typeof wanted !== 'object' || wanted === null) return there === wanted
  if (typeof there !== 'object' || there === null) return false
  return Object.entries(wanted).every(([name, value]) => holds(Reflect.get(there, name), value))
}

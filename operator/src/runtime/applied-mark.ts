import type { Desired, KubeObject } from '@tutti/kube'

/** On every object that is applied: the digest of the applied object, so that the next process need not apply it again. */
export const APPLIED_ANNOTATION = 'tutti.dev/applied'

/** An object that is wanted, and the digest of it. */
export interface DigestedObject {
  readonly desired: Desired<KubeObject>
  readonly digest: string
}

/** Adds the mark to what is sent to the server. */
export function withMark({ desired, digest }: DigestedObject): Desired<KubeObject> {
  const { metadata } = desired
  const annotations = { ...metadata.annotations, [APPLIED_ANNOTATION]: digest }
  return { ...desired, metadata: { ...metadata, annotations } }
}

/** The object as it was before it got its mark. */
export function withoutMark(object: Pick<KubeObject, 'metadata'>): object {
  const { metadata } = object
  const { [APPLIED_ANNOTATION]: _, ...annotations } = metadata.annotations ?? {}
  const { annotations: __, ...others } = metadata
  const isEmpty = Object.keys(annotations).length === 0
  return { ...object, metadata: isEmpty ? others : { ...others, annotations } }
}

/**
 * True if all that is wanted stands in what is there, which may have more members, as the server adds defaults, but no more
 * elements. What the server writes in other words (a quantity of `1000m`, say) does not stand.
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

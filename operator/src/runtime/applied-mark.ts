import type { Desired, KubeObject } from '@tutti/kube'

/** On every object that is applied: the digest of the applied object, so that the next process need not apply it again. */
export const APPLIED_ANNOTATION = 'tutti.dev/applied'

/** What is wanted of an object, and the digest of that. */
export interface DigestedObject {
  readonly desired: Desired<KubeObject>
  readonly digest: string
}

/** What is sent to the server. */
export function withMark({ desired, digest }: DigestedObject): Desired<KubeObject> {
  const { metadata } = desired
  const annotations = { ...metadata.annotations, [APPLIED_ANNOTATION]: digest }
  return { ...desired, metadata: { ...metadata, annotations } }
}

/**
 * True if exactly this is what was applied last, and all of it still stands in the object. What the server writes in other
 * words (a quantity of `1000m`, say) counts as changed.
 */
export function isAsApplied(object: KubeObject, { desired, digest }: DigestedObject): boolean {
  return object.metadata.annotations?.[APPLIED_ANNOTATION] === digest && holds(object, desired)
}

/** What is there may have more members than what is wanted, as the server adds defaults, but no more elements. */
function holds(there: unknown, wanted: unknown): boolean {
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

import type { ObjectKey, Resource } from '@tutti/kube'

/** A child that is being deleted. It cannot be changed, and the operator creates it again only when it is gone. */
export interface Deletion {
  /** Message of one line for a condition. */
  readonly message: string
  /** True if the garbage collector finishes the deletion without a person. */
  readonly isPassing: boolean
}

/** Finalizers that a deletion with `propagationPolicy` Foreground or Orphan sets, and Kubernetes' garbage collector takes away. */
const OF_COLLECTOR: ReadonlySet<string> = new Set(['foregroundDeletion', 'orphan'])

/**
 * Explains why an object that is being deleted still exists. Pure.
 *
 * @returns undefined without finalizers: then the object's namespace is being deleted, and nothing is created there again.
 */
export function toDeletion({
  resource: { kind },
  key: { name },
  finalizers,
}: {
  readonly resource: Pick<Resource, 'kind'>
  readonly key: ObjectKey
  readonly finalizers: readonly string[]
}): Deletion | undefined {
  if (finalizers.length === 0) return undefined
  const place = `${kind} "${name}": is being deleted`
  const others = finalizers.filter((finalizer) => !OF_COLLECTOR.has(finalizer))
  if (others.length === 0) {
    const message = `${place}, and its dependents before it; it is created again once the garbage collector is done`
    return { message, isPassing: true }
  }
  const names = others.map((finalizer) => `"${finalizer}"`).join(', ')
  const message = `${place} and held by ${names} in metadata.finalizers; it is created again once they are removed`
  return { message, isPassing: false }
}

import type { ObjectKey, Resource } from '@tutti/kube'

/** An object of ours that is being deleted: it cannot be changed, and none is made in its place before it is gone. */
export interface Deletion {
  /** One line. */
  readonly message: string
  /** True if the garbage collector brings it to an end without a person. */
  readonly isPassing: boolean
}

/** Finalizers that a deletion with `propagationPolicy` Foreground or Orphan sets, and Kubernetes' garbage collector takes away. */
const OF_COLLECTOR: ReadonlySet<string> = new Set(['foregroundDeletion', 'orphan'])

/**
 * Why an object that is being deleted is still there. Pure.
 *
 * @returns undefined if no finalizer holds it: its namespace is being deleted, and nothing more is made there.
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

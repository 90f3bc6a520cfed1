import { compareClaims, modelNameOf } from '@tutti/api'
import type { KubeObject, Stored } from '@tutti/kube'

/** A Model or an Ensemble, of which only the name that clients call matters here. */
export type Served = Stored<KubeObject & { readonly spec: unknown }>

/** Returns the name by which clients call a Model or an Ensemble, also where the spec is none that we know. */
export function servedNameOf({ metadata, spec }: Served): string {
  const modelName: unknown = Object(spec).modelName
  return modelNameOf({ metadata, spec: typeof modelName === 'string' ? { modelName } : {} })
}

/** The value of an index by which caches find those that clients call the same: `namespace/name`. */
export function servedNameKey(object: Served): string {
  return `${object.metadata.namespace}/${servedNameOf(object)}`
}

/**
 * The one that has the served name, if it is not this one.
 *
 * @param others - all Models and Ensembles of that served name in the namespace; may hold the object itself.
 */
export function findRival(object: Served, others: readonly Served[]): Served | undefined {
  const rivals = others.filter(
    ({ metadata }) =>
      metadata.uid !== object.metadata.uid && metadata.deletionTimestamp === undefined,
  )
  const [first] = [object, ...rivals].toSorted(compareClaims)
  return first === object ? undefined : first
}

import { compareClaims, modelNameOf } from '@tutti/api'
import type { KubeObject, Stored } from '@tutti/kube'

/** A Model or an Ensemble. Its spec may be invalid. */
export type Served = Stored<KubeObject & { readonly spec: unknown }>

/** Returns the name by which clients call a Model or an Ensemble, also if the rest of its spec is invalid. */
export function servedNameOf({ metadata, spec }: Served): string {
  const modelName: unknown = Object(spec).modelName
  return modelNameOf({ metadata, spec: typeof modelName === 'string' ? { modelName } : {} })
}

/** Returns the served name as key of an index, `namespace/served name`. */
export function servedNameKey(object: Served): string {
  return `${object.metadata.namespace}/${servedNameOf(object)}`
}

/**
 * Finds another Model or Ensemble that holds the served name of this object; undefined if this object holds it.
 *
 * @param others - all Models and Ensembles of this served name in the namespace; the object itself may be among them.
 */
export function findRival(object: Served, others: readonly Served[]): Served | undefined {
  const rivals = others.filter(
    ({ metadata }) =>
      metadata.uid !== object.metadata.uid && metadata.deletionTimestamp === undefined,
  )
  const [first] = [object, ...rivals].toSorted(compareClaims)
  return first === object ? undefined : first
}

import { API_VERSION, type EnsembleManifest, EnsembleSpec } from '@tutti/api'
import { modelsOfStep } from '@tutti/graph'
import type { Stored } from '@tutti/kube'
import type { EnsembleObject } from '../api/kinds.ts'
import { once, parseSpec } from './read-spec.ts'

/** The manifest of a stored Ensemble, or why it cannot be read: an older or newer schema may have accepted it. */
export type ReadEnsemble =
  | { readonly manifest: EnsembleManifest; readonly problem?: undefined }
  /** Problem of the spec, in one line. */
  | { readonly manifest?: undefined; readonly problem: string }

/** Parses the spec of an Ensemble. Each object is parsed once. */
export const readEnsemble = once((object: Stored<EnsembleObject>): ReadEnsemble => {
  const { spec, problem } = parseSpec(EnsembleSpec, object.spec)
  if (problem !== undefined) return { problem }
  const { name, namespace } = object.metadata
  const metadata = { name, ...(namespace !== undefined && { namespace }) }
  return { manifest: { apiVersion: API_VERSION, kind: 'Ensemble', metadata, spec } }
})

/** Returns the served names of the models and ensembles that the steps may call, each once. */
export function stepModelsOf(object: Stored<EnsembleObject>): readonly string[] {
  const { manifest } = readEnsemble(object)
  return [...new Set((manifest?.spec.steps ?? []).flatMap(modelsOfStep))]
}

/** Returns the served names of `stepModelsOf` as keys of an index, `namespace/served name`. */
export function stepKeysOf(object: Stored<EnsembleObject>): readonly string[] {
  return stepModelsOf(object).map((name) => `${object.metadata.namespace}/${name}`)
}

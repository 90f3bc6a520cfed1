import { API_VERSION, type EnsembleManifest, EnsembleSpec } from '@tutti/api'
import type { Stored } from '@tutti/kube'
import type { EnsembleObject } from '../api/kinds.ts'
import { once, parseSpec } from './read-spec.ts'

/** An Ensemble as it was stored: what an older or newer schema let in may not be readable. */
export type ReadEnsemble =
  | { readonly manifest: EnsembleManifest; readonly problem?: undefined }
  /** One line. */
  | { readonly manifest?: undefined; readonly problem: string }

/** Reads the spec of an Ensemble, once for each state of it. */
export const readEnsemble = once((object: Stored<EnsembleObject>): ReadEnsemble => {
  const { spec, problem } = parseSpec(EnsembleSpec, object.spec)
  if (problem !== undefined) return { problem }
  const { name, namespace } = object.metadata
  const metadata = { name, ...(namespace !== undefined && { namespace }) }
  return { manifest: { apiVersion: API_VERSION, kind: 'Ensemble', metadata, spec } }
})

/** Served names of the models and ensembles of the steps, each once. */
export function stepModelsOf(object: Stored<EnsembleObject>): readonly string[] {
  const { manifest } = readEnsemble(object)
  const names = (manifest?.spec.steps ?? []).map(
    (step) => step.modelRef?.name ?? step.ensembleRef?.name,
  )
  return [...new Set(names.filter((name) => name !== undefined))]
}

/** The same as keys of an index, `namespace/served name`. */
export function stepKeysOf(object: Stored<EnsembleObject>): readonly string[] {
  return stepModelsOf(object).map((name) => `${object.metadata.namespace}/${name}`)
}

import {
  API_VERSION,
  type EnsembleManifest,
  EnsembleSpec,
  inOurWords,
  toProblemText,
  toSchemaProblems,
} from '@tutti/ensemble'
import type { Stored } from '@tutti/kube'
import type { EnsembleObject } from '../../api/kinds.ts'

/** An Ensemble as it was stored: what an older or newer schema let in may not be readable. */
export type ReadEnsemble =
  | { readonly manifest: EnsembleManifest; readonly problem?: undefined }
  /** One line. */
  | { readonly manifest?: undefined; readonly problem: string }

const known = new WeakMap<object, ReadEnsemble>()

/** Parses the spec; remembered, as objects of a cache stay the same. */
export function readEnsemble(object: Stored<EnsembleObject>): ReadEnsemble {
  const before = known.get(object)
  if (before !== undefined) return before
  const read = parse(object)
  known.set(object, read)
  return read
}

function parse({ metadata, spec }: Stored<EnsembleObject>): ReadEnsemble {
  const { success, data, error } = EnsembleSpec.safeParse(spec, { error: inOurWords })
  if (!success) return { problem: toProblemText(toSchemaProblems(EnsembleSpec, error)) }
  const { name, namespace } = metadata
  return {
    manifest: {
      apiVersion: API_VERSION,
      kind: 'Ensemble',
      metadata: { name, ...(namespace !== undefined && { namespace }) },
      spec: data,
    },
  }
}

/** Served names of what the steps run, each once. */
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

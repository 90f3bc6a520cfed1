import { inOurWords, ModelSpec, toProblemText, toSchemaProblems } from '@tutti/ensemble'
import type { Stored } from '@tutti/kube'
import type { ModelObject } from '../../api/kinds.ts'

/** A spec, or in one line why it is none. */
export type ReadSpec =
  | { readonly spec: ModelSpec; readonly error?: undefined }
  | { readonly spec?: undefined; readonly error: string }

const known = new WeakMap<Stored<ModelObject>, ReadSpec>()

/** Reads the spec of a Model, once for each state of it. */
export function readModelSpec(model: Stored<ModelObject>): ReadSpec {
  const before = known.get(model)
  if (before !== undefined) return before
  const { success, data: spec, error } = ModelSpec.safeParse(model.spec, { error: inOurWords })
  const read = success ? { spec } : { error: toProblemText(toSchemaProblems(ModelSpec, error)) }
  known.set(model, read)
  return read
}

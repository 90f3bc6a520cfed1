import { inOurWords, ModelSpec, toProblemText, toSchemaProblems } from '@tutti/ensemble'
import type { Stored } from '@tutti/kube'
import type { ModelObject } from '../../api/kinds.ts'

/** A spec, or in one line why it is none. */
export type ReadSpec =
  | { readonly spec: ModelSpec; readonly error?: undefined }
  | { readonly spec?: undefined; readonly error: string }

/** Of a pod spec; Kubernetes' own has about a dozen. */
const DEEPEST = 64

const known = new WeakMap<Stored<ModelObject>, ReadSpec>()

/** Reads the spec of a Model, once for each state of it. */
export function readModelSpec(model: Stored<ModelObject>): ReadSpec {
  const before = known.get(model)
  if (before !== undefined) return before
  const read = parse(model.spec)
  known.set(model, read)
  return read
}

function parse(json: unknown): ReadSpec {
  const { success, data: spec, error } = ModelSpec.safeParse(json, { error: inOurWords })
  if (!success) return { error: toProblemText(toSchemaProblems(ModelSpec, error)) }
  if (!isDeeper(spec.podTemplate?.spec, DEEPEST)) return { spec }
  return { error: `podTemplate.spec: got more than ${DEEPEST} levels, which no pod has` }
}

/** The server lets in what no schema describes to ten thousand levels, and our own functions would overflow the stack. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((part) => isDeeper(part, levels - 1))
}

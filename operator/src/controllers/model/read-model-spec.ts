import { ModelSpec } from '@tutti/api'
import type { Stored } from '@tutti/kube'
import type { ModelObject } from '../../api/kinds.ts'
import { once, parseSpec, type ReadSpec } from '../read-spec.ts'

/** Most levels of a pod spec; Kubernetes' own has about a dozen. */
const DEEPEST = 64

/** Parses the spec of a Model. Each object is parsed once. */
export const readModelSpec = once(({ spec }: Stored<ModelObject>): ReadSpec<ModelSpec> => {
  const read = parseSpec(ModelSpec, spec)
  if (!isDeeper(read.spec?.podTemplate?.spec, DEEPEST)) return read
  return { problem: `podTemplate.spec: got more than ${DEEPEST} levels, which no pod has` }
})

/**
 * Tells whether a value is deeper than so many levels. Where no schema describes a value, the server lets in ten thousand levels,
 * on which our functions would overflow the stack.
 */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((part) => isDeeper(part, levels - 1))
}

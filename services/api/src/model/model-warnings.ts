import { DEFAULT_REPLICAS } from './model-scaling.ts'
import type { ModelSpec } from './model-spec.ts'

type Warned = Pick<ModelSpec, 'disruptionBudget' | 'scaling'>

/**
 * Finds settings of a Model that are valid but probably not meant, such as a disruption budget that blocks every drain of a
 * node.
 *
 * @returns a line of text for each, which begins with the field.
 */
export function findModelWarnings({ disruptionBudget = {}, scaling }: Warned): readonly string[] {
  const fewest = fewestOf(scaling)
  const { minAvailable, maxUnavailable } = disruptionBudget
  const stay = minAvailable === undefined ? 0 : toCount(minAvailable, fewest)
  const go = maxUnavailable === undefined ? fewest : toCount(maxUnavailable, fewest)
  if (fewest === 0 || (stay < fewest && go > 0)) return []
  const [field, got] =
    minAvailable === undefined ? ['maxUnavailable', maxUnavailable] : ['minAvailable', minAvailable]
  const pods = `${fewest} ${fewest === 1 ? 'pod' : 'pods'}`
  return [
    `disruptionBudget.${field}: got ${got}, which blocks every drain of a node while the Model has ${pods}, its fewest; want room for one pod, e.g. maxUnavailable 1`,
  ]
}

function fewestOf({ provider, minReplicas = 1, replicas }: ModelSpec['scaling'] = {}): number {
  return provider === 'None' ? (replicas ?? DEFAULT_REPLICAS) : minReplicas
}

/** Converts a number or a share of pods to a number; rounds up, as a PodDisruptionBudget does. */
function toCount(value: number | string, pods: number): number {
  return typeof value === 'number' ? value : Math.ceil((Number.parseInt(value, 10) * pods) / 100)
}

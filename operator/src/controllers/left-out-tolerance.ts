import { HORIZONTAL_POD_AUTOSCALER } from '@tutti/kube'
import type { AutoscalerFields } from '../resources/autoscaler.ts'
import type { ChildOutcome } from '../runtime/apply.ts'

/**
 * Finds a tolerance that the HPA does not have. A server whose feature gate is off leaves it out, and says nothing: it is the one
 * field that is taken from a `scaling` as it is and that a supported Kubernetes may not keep.
 *
 * @returns the message of a condition; undefined if nothing was left out.
 */
export function findLeftOutTolerance(
  behavior: AutoscalerFields['behavior'],
  outcomes: readonly ChildOutcome[],
): string | undefined {
  const kept = findBehavior(outcomes)
  if (kept === undefined) return undefined
  for (const way of ['scaleUp', 'scaleDown'] as const) {
    if (behavior?.[way]?.tolerance === undefined) continue
    if (Object(kept[way]).tolerance !== undefined) continue
    return `spec.scaling.behavior.${way}.tolerance: the API server leaves it out of the HorizontalPodAutoscaler; want its feature gate HPAConfigurableTolerance, or no tolerance`
  }
  return undefined
}

/** Finds the behavior of the HPA, as the server has it; undefined if there is no HPA. */
function findBehavior(
  outcomes: readonly ChildOutcome[],
): Readonly<Record<string, unknown>> | undefined {
  for (const outcome of outcomes) {
    if (outcome.resource !== HORIZONTAL_POD_AUTOSCALER || !('object' in outcome)) continue
    return Object(Object(Object(outcome.object).spec).behavior)
  }
  return undefined
}

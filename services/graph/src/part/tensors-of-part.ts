import type { EnsemblePlan } from '../plan/ensemble-plan.ts'

/** Names a tensor at the border of a part, and within: names of a graph may come twice. */
export function nameTensor(tensor: number): string {
  return `#${tensor}`
}

/**
 * Lists the tensors that cross the border of a part: those that its steps read of others, and those of its own that others need.
 *
 * @returns indexes into `plan.tensors`, ascending.
 */
export function tensorsOfPart(
  plan: Pick<EnsemblePlan, 'steps' | 'tensors' | 'outputs'>,
  steps: readonly number[],
): { readonly read: readonly number[]; readonly made: readonly number[] } {
  const isInside = (step: number | undefined): boolean => step !== undefined && steps.includes(step)
  const readBy = (isWanted: (step: number) => boolean): ReadonlySet<number> =>
    new Set(plan.steps.flatMap(({ index, reads }) => (isWanted(index) ? reads : [])))
  const inside = readBy((step) => isInside(step))
  const outside = readBy((step) => !isInside(step))
  const given = new Set(plan.outputs.flatMap(({ tensors }) => tensors))
  const indexes = [...plan.tensors.keys()]
  const isMadeInside = (tensor: number): boolean => isInside(plan.tensors[tensor]?.step)
  return {
    read: indexes.filter((tensor) => inside.has(tensor) && !isMadeInside(tensor)),
    made: indexes.filter(
      (tensor) => isMadeInside(tensor) && (outside.has(tensor) || given.has(tensor)),
    ),
  }
}

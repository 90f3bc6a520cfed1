import type { EnsembleSpec } from '@tutti/api'
import type { ForEach, GraphStep, Loop } from '../graph.ts'
import type { StepControls } from './read-controls.ts'
import { toConstant } from './resolve-references.ts'

const PARALLEL_ITEMS = 16

/** Makes the parts of a step of the graph that say how often it runs. */
export function readRepeat(
  { forEach, loop }: EnsembleSpec['steps'][number],
  { own, carry }: StepControls,
): Pick<GraphStep, 'forEach' | 'loop'> {
  return {
    ...(forEach !== undefined && { forEach: toForEach(forEach) }),
    ...(loop !== undefined && { loop: toLoop(loop, own, carry) }),
  }
}

function toForEach({
  items,
  count,
  maxItems,
  maxParallel = PARALLEL_ITEMS,
  gather = 'Stack',
  onItemError,
}: NonNullable<EnsembleSpec['steps'][number]['forEach']>): ForEach {
  const values = Object.entries(onItemError?.default ?? {}).map(
    ([output, constant]) => [output, toConstant(constant)] as const,
  )
  return {
    items: Object.keys(items),
    ...(count !== undefined && { count }),
    maxItems,
    maxParallel,
    gather,
    ...(onItemError !== undefined && { itemDefault: Object.fromEntries(values) }),
  }
}

function toLoop(
  { until, maxIterations }: NonNullable<EnsembleSpec['steps'][number]['loop']>,
  own: StepControls['own'],
  carry: StepControls['carry'],
): Loop {
  return {
    carry: [...carry].map(([input, output]) => ({ input, output })),
    ...(until !== undefined && { until }),
    reads: [...own].map(([name, output]) => ({ name, output })),
    maxIterations,
  }
}

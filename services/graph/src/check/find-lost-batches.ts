import { formatShape, type Shape } from '@tutti/tensor'
import { tensorsOf } from '../graph.ts'
import type { Checked, ConditionFault } from './condition-fault.ts'

/** Finds outputs of an ensemble with batches for which a built-in, which sees whole batches, keeps no rows as the first dimension. */
export function* findLostBatches({
  config,
  graph,
  configOf,
}: Pick<Checked, 'config' | 'graph' | 'configOf'>): Generator<ConditionFault> {
  if (config.max_batch_size === 0) return
  for (const [output, { from }] of graph.outputs.entries()) {
    for (const source of tensorsOf(from)) {
      const step = source.kind === 'made' ? graph.steps[source.step] : undefined
      if (source.kind !== 'made' || step?.builtin === undefined) continue
      const made = configOf(step)?.output.find(({ name }) => name === source.output)
      if (made === undefined || hasRows(made.dims)) continue
      const field = from.kind === 'firstOf' ? 'firstOf' : 'from'
      const got = `'${step.name}.${source.output}' of the dims ${formatShape(made.dims)}`
      const want = 'the rows of the batch as the first dimension ([-1,...]), and one more'
      yield { reason: 'ShapeMismatch', at: { output, field }, got, want }
    }
  }
}

function hasRows([first, ...others]: Shape): boolean {
  return first === -1 && others.length > 0
}

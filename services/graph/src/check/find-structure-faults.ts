import type { ModelConfig } from '@tutti/model-config'
import { type Graph, readsOf, stepsOf, tensorName, tensorsOf } from '../graph.ts'
import { type Doubts, NO_DOUBTS } from './doubts.ts'
import type { StepTensor } from './find-tensor-faults.ts'
import { findStepCycle } from './graph-walks.ts'

/** A rule that a graph breaks whatever its models are. */
export type StructureFault =
  | { readonly kind: 'no model' | 'no inputs' | 'no outputs'; readonly step: number }
  /** Two outputs make the same tensor. */
  | {
      readonly kind: 'made twice'
      readonly at: StepTensor
      readonly tensor: string
      readonly first: StepTensor
    }
  /** @param index - of the ensemble's input. */
  | { readonly kind: 'unread input'; readonly index: number; readonly name: string }
  | { readonly kind: 'unread tensor'; readonly at: StepTensor; readonly tensor: string }
  /** @param steps - in the order in which they wait for one another. */
  | { readonly kind: 'cycle'; readonly steps: readonly number[] }

/**
 * Finds every rule that the graph breaks whatever its models are: those of each step first, as Triton does. Sources that are not
 * known are told by who read the graph.
 *
 * @param config - of the ensemble, for its inputs.
 */
export function findStructureFaults(
  config: Pick<ModelConfig, 'input'>,
  graph: Graph,
  doubts: Doubts = NO_DOUBTS,
): readonly StructureFault[] {
  const ofSteps = findStepFaults(graph, doubts)
  // Without steps, each input and output would be told too.
  if (graph.steps.length === 0) return ofSteps
  return [...ofSteps, ...findUnread(config, graph, doubts), ...findCycles(graph)]
}

function findStepFaults({ steps }: Graph, { partial, steps: meant }: Doubts): StructureFault[] {
  const makers = new Map<string, StepTensor>()
  const faults: StructureFault[] = []
  for (const [step, { model, inputs, outputs }] of steps.entries()) {
    if (model === '') faults.push({ kind: 'no model', step })
    const isFed = inputs.some(({ from }) => from.kind !== 'constant')
    if (!isFed && !partial.has(step)) faults.push({ kind: 'no inputs', step })
    if (outputs.length === 0 && !meant.has(step)) faults.push({ kind: 'no outputs', step })
    for (const { name, tensor } of outputs) {
      const at: StepTensor = { step, side: 'output', name }
      const first = makers.get(tensor)
      if (first === undefined) makers.set(tensor, at)
      else faults.push({ kind: 'made twice', at, tensor, first })
    }
  }
  return faults
}

/** Goes by names: a step that writes onto the name of an input has used it, as in Triton. */
function findUnread(
  { input }: Pick<ModelConfig, 'input'>,
  graph: Graph,
  { tensors: meant }: Doubts,
): StructureFault[] {
  const { steps, outputs } = graph
  const read = new Set(steps.flatMap(readsOf).map((tensor) => tensorName(graph, tensor)))
  const given = new Set(
    outputs.flatMap(({ from }) => tensorsOf(from)).map((tensor) => tensorName(graph, tensor)),
  )
  const made = new Map<string, StepTensor>()
  for (const [step, one] of steps.entries()) {
    for (const { name, tensor } of one.outputs) {
      if (!made.has(tensor)) made.set(tensor, { step, side: 'output', name })
    }
  }
  const inputs = input.flatMap(({ name }, index): StructureFault[] =>
    read.has(name) || made.has(name) || meant.has(name)
      ? []
      : [{ kind: 'unread input', index, name }],
  )
  const tensors = [...made].flatMap(([tensor, at]): StructureFault[] =>
    read.has(tensor) || given.has(tensor) || meant.has(tensor)
      ? []
      : [{ kind: 'unread tensor', at, tensor }],
  )
  return [...inputs, ...tensors]
}

/** Finds one cycle after another, until none is left if the first step of each waited for nothing. */
function findCycles({ steps }: Graph): StructureFault[] {
  const faults: StructureFault[] = []
  const waits = steps.map((step): readonly number[] => [...stepsOf(readsOf(step)), ...step.after])
  for (;;) {
    const cycle = findStepCycle(waits) ?? []
    const [first] = cycle
    if (first === undefined) return faults
    faults.push({ kind: 'cycle', steps: cycle })
    waits[first] = []
  }
}

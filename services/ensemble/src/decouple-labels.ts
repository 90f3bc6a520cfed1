import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import type { TensorDefinitions } from './tensor-mapping.ts'

/** One step's wiring: indexes of the tensors that it reads and makes. */
export interface StepWiring {
  readonly model: string
  readonly decoupled: boolean
  readonly inputs: readonly number[]
  readonly outputs: readonly number[]
}

export interface DecoupleLabels {
  /** Of the inputs of each step. */
  readonly steps: readonly number[]
  /** Of each tensor. */
  readonly tensors: readonly number[]
}

/**
 * Finds out which decoupled step counts the values of each tensor: 0 for none, else 1 + the step's index.
 *
 * @param tensors - names by index; what no step makes is an ensemble input.
 * @param sink - the tensors that are ensemble outputs.
 * @throws ServeError ENSEMBLE_INVALID if tensors that are counted by different steps meet.
 * @see triton-semantics 1.2, the decoupled label rule
 */
export function labelTensors(o: {
  readonly config: ModelConfig
  readonly definitions: TensorDefinitions
  readonly tensors: readonly string[]
  readonly steps: readonly StepWiring[]
  readonly sink: readonly number[]
}): DecoupleLabels {
  const labels: (number | undefined)[] = o.tensors.map(() => 0)
  for (const step of o.steps) for (const tensor of step.outputs) labels[tensor] = undefined
  const stepLabels = o.steps.map(() => 0)
  const open = new Set(o.steps.keys())
  // The graph has no cycle, so every round settles a step.
  for (const index of rounds(open)) {
    const step = o.steps[index]
    if (step?.inputs.some((tensor) => labels[tensor] === undefined)) continue
    open.delete(index)
    if (step === undefined) continue
    const label = commonLabel(step.inputs, labels)
    if (label === undefined) throw mixed(o.config, meetingModel(o, step))
    stepLabels[index] = label
    for (const tensor of step.outputs) labels[tensor] = step.decoupled ? index + 1 : label
  }
  if (commonLabel(o.sink, labels) === undefined) throw mixed(o.config, o.config.name)
  return { steps: stepLabels, tensors: labels.map((label) => label ?? 0) }
}

/** The members of `open` in order, again and again until there is none. The member at hand may be deleted. */
function* rounds(open: ReadonlySet<number>): Generator<number> {
  while (open.size > 0) yield* open
}

function commonLabel(
  tensors: readonly number[],
  labels: readonly (number | undefined)[],
): number | undefined {
  const [first = -1] = tensors
  const label = labels[first] ?? 0
  return tensors.every((tensor) => labels[tensor] === label) ? label : undefined
}

/** Triton names whoever defined the tensor that the step makes: the ensemble, if that is an ensemble output. */
function meetingModel(
  o: { readonly definitions: TensorDefinitions; readonly tensors: readonly string[] },
  step: StepWiring,
): string {
  const [first = -1] = step.outputs
  return o.definitions.get(o.tensors[first] ?? '')?.model ?? step.model
}

function mixed(config: ModelConfig, model: string): ServeError {
  return new ServeError(
    'ENSEMBLE_INVALID',
    `in ensemble ${config.name}, step of model '${model}' receives inputs originated from different decoupled models`,
    { details: { ensemble: config.name, model } },
  )
}

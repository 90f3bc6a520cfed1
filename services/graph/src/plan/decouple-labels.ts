import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import type { TensorDefinitions } from '../check/find-tensor-faults.ts'
import { settle } from '../check/graph-walks.ts'
import type { PlanEnsembleTensor, PlanStep, PlanTensor } from './ensemble-plan.ts'

interface UnlabelledPlan {
  readonly config: ModelConfig
  readonly definitions: TensorDefinitions
  readonly tensors: readonly Omit<PlanTensor, 'label'>[]
  readonly steps: readonly Omit<PlanStep, 'label'>[]
  readonly outputs: readonly PlanEnsembleTensor[]
}

/**
 * Finds the label of each tensor. Label 0 means one value for each request. Label i + 1 means one value for each response of
 * the decoupled step i.
 *
 * @returns labels by tensor. A step has the label of its inputs.
 * @throws ServeError ENSEMBLE_INVALID if a step, or the outputs, use tensors of different labels.
 * @see triton-semantics 1.2, the decoupled label rule
 */
export function labelTensors(o: UnlabelledPlan): readonly (number | undefined)[] {
  const labels = o.tensors.map(({ step }): number | undefined =>
    step === undefined ? 0 : undefined,
  )
  settle(new Set(o.steps), (step) => {
    if (step.reads.some((tensor) => labels[tensor] === undefined)) return false
    const label = commonLabel(step.reads, labels)
    if (label === undefined) {
      const meeting = `step '${step.name}' reads ${describeReads(o, step.reads, labels)}`
      throw mixed(o.config, { model: meetingModel(o, step), meeting })
    }
    for (const { tensor } of step.outputs) labels[tensor] = step.decoupled ? step.index + 1 : label
    return true
  })
  const given = o.outputs.flatMap(({ tensors }) => tensors)
  if (commonLabel(given, labels) === undefined) {
    const meeting = `the outputs are ${describeReads(o, given, labels)}`
    throw mixed(o.config, { model: o.config.name, meeting })
  }
  return labels
}

function commonLabel(
  tensors: readonly number[],
  labels: readonly (number | undefined)[],
): number | undefined {
  const [label = 0, ...others] = new Set(tensors.map((tensor) => labels[tensor]))
  return others.length === 0 ? label : undefined
}

/** Finds the model that Triton names: the model that defined the step's tensor, or the ensemble if the tensor is its output. */
function meetingModel(
  { definitions, tensors }: UnlabelledPlan,
  { outputs, model }: Omit<PlanStep, 'label'>,
): string {
  const made = tensors[outputs[0]?.tensor ?? -1]?.name ?? ''
  return definitions.get(made)?.model ?? model
}

/** Describes one tensor of each label, and the model by which it is counted. */
function describeReads(
  { tensors, steps }: UnlabelledPlan,
  read: readonly number[],
  labels: readonly (number | undefined)[],
): string {
  const byLabel = new Map(read.map((tensor) => [labels[tensor] ?? 0, tensors[tensor]?.name]))
  const texts = [...byLabel].map(([label, tensor]) => {
    const each = label === 0 ? 'request' : `response of step '${steps[label - 1]?.name}'`
    return `'${tensor}' once for each ${each}`
  })
  return texts.join(' and ')
}

/** @param o.meeting - says which tensors meet, behind Triton's text. */
function mixed(
  config: ModelConfig,
  { model, meeting }: { readonly model: string; readonly meeting: string },
): ServeError {
  const text = `in ensemble ${config.name}, step of model '${model}' receives inputs originated from different decoupled models: ${meeting}`
  return new ServeError('ENSEMBLE_INVALID', text, { details: { ensemble: config.name, model } })
}

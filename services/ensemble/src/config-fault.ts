import type { ModelConfig } from '@tutti/model-config'
import { formatShape, fromConfigDatatype } from '@tutti/tensor'
import { type AcceptedReason, hintOf } from './manifest/ensemble-fault.ts'
import type { MappingFault, TensorDefinition } from './tensor-mapping.ts'

/** One thing that is wrong with an ensemble of a repository. */
export interface ConfigFault {
  readonly reason: AcceptedReason
  /** Path of the field in config.pbtxt, e.g. `ensemble_scheduling.step[2].input_map[image]`; '' for the whole file. */
  readonly path: string
  readonly message: string
}

/** Builds the path of a step in config.pbtxt: `ensemble_scheduling.step[2]`. */
export function configStepPath(index: number): string {
  return `ensemble_scheduling.step[${index}]`
}

/** Describes a fault of the steps' maps to the author of a config.pbtxt. */
export function toMappingFault(config: ModelConfig, fault: MappingFault): ConfigFault {
  const { model, at } = fault
  const step = configStepPath(at.step)
  const path = `${step}.${at.side}_map[${at.name}]`
  switch (fault.kind) {
    case 'batch': {
      const message = `got ${config.max_batch_size}, want at most ${model.max_batch_size}: '${model.name}' of ${step} takes no larger batches`
      return { reason: 'LimitExceeded', path: 'max_batch_size', message }
    }
    case 'unmapped': {
      const message = `the input '${at.name}' of '${model.name}' is fed by nothing: want a tensor ${show(fault.next)} in input_map`
      return { reason: 'MissingInput', path: step, message }
    }
    case 'repeated':
      return {
        reason: 'MultipleProducers',
        path,
        message: `'${model.name}' has several outputs '${at.name}'`,
      }
    case 'unknown': {
      const hint = hintOf(
        at.name,
        model[at.side].map(({ name }) => name),
      )
      const message = `'${model.name}' has no ${at.side} '${at.name}'${hint}`
      return { reason: 'UnknownTensor', path, message }
    }
    case 'datatype':
    case 'shape':
  }
  const [own, other] = [show(fault.next), show(fault.first)]
  const label = labelOf(config, fault.tensor, fault.first)
  const verb = at.side === 'input' ? 'takes' : 'makes'
  const message = `'${model.name}' ${verb} ${own}, ${label} is ${other}`
  return { reason: fault.kind === 'datatype' ? 'DatatypeMismatch' : 'ShapeMismatch', path, message }
}

/** Finds the words by which a message calls the place that named a tensor first. */
function labelOf(config: ModelConfig, tensor: string, { at }: TensorDefinition): string {
  if (at !== undefined)
    return `'${tensor}' of ${configStepPath(at.step)}.${at.side}_map[${at.name}]`
  const isInput = config.input.some(({ name }) => name === tensor)
  return `the ${isInput ? 'input' : 'output'} '${tensor}'`
}

/** Shows a tensor as `FP32[-1,3]`, with the batch dimension if there is one. */
function show({ dataType, fullDims }: TensorDefinition): string {
  return `${fromConfigDatatype(dataType) ?? dataType}${formatShape(fullDims)}`
}

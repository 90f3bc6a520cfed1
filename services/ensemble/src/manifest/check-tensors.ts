import type { ModelConfig } from '@tutti/model-config'
import { formatShape, fromConfigDatatype } from '@tutti/tensor'
import { configByName } from '../composing-models.ts'
import {
  findMappingFaults,
  type MappingFault,
  type StepTensor,
  type TensorDefinition,
} from '../tensor-mapping.ts'
import { type EnsembleFault, hintOf, type ReportFault, refused } from './ensemble-fault.ts'
import { sourceKeyOf, stepPath } from './ensemble-references.ts'
import type { EnsembleConversion } from './to-ensemble-config.ts'

/**
 * Checks the maps of every step against the models that are known, as planning does.
 *
 * @param report - takes each fault, which says where in the manifest it is written.
 */
export function checkTensors(
  conversion: EnsembleConversion,
  models: ReadonlyMap<string, ModelConfig>,
  report: ReportFault,
): void {
  const { config, graph } = conversion
  // An output whose model is not known has no type that others could differ from.
  const output = config.output.filter((one) => one.data_type !== 'TYPE_INVALID')
  const { faults } = findMappingFaults({ ...config, output }, configByName(models))
  for (const fault of faults) {
    // A reference that was reported may feed the input that seems to be fed by nothing.
    if (fault.kind === 'unmapped' && graph.partial.has(fault.at.step)) continue
    report(toRefusal(conversion, fault))
  }
}

function toRefusal(conversion: EnsembleConversion, fault: MappingFault): EnsembleFault {
  const { config, graph } = conversion
  const { model, at } = fault
  const step = stepPath(graph.spec, at.step)
  const path = fault.kind === 'batch' ? 'maxBatchSize' : pathOf(conversion, at)
  switch (fault.kind) {
    case 'batch': {
      const problem = `got ${config.max_batch_size}, want at most ${model.max_batch_size}: '${model.name}' of ${step} takes no larger batches`
      return refused('LimitExceeded', path, problem)
    }
    case 'unmapped': {
      const problem = `the input '${at.name}' of '${model.name}' is fed by nothing: want a tensor ${show(fault.next)} in inputMap`
      return refused('MissingInput', step, problem)
    }
    case 'repeated':
      return refused('MultipleProducers', path, `'${model.name}' has several outputs '${at.name}'`)
    case 'unknown': {
      const problem = `'${model.name}' has no ${at.side} '${at.name}'${unknownHint(conversion, model, at)}`
      return refused('UnknownTensor', path, problem)
    }
    case 'datatype':
    case 'shape':
  }
  const reason = fault.kind === 'datatype' ? 'DatatypeMismatch' : 'ShapeMismatch'
  const [own, other] = [show(fault.next), show(fault.first)]
  const label = labelOf(conversion, fault.tensor, fault.first)
  const problem =
    at.side === 'input'
      ? `${own} expected, ${label} is ${other}`
      : `'${model.name}' makes ${own}, ${label} is ${other}`
  return refused(reason, path, problem)
}

function unknownHint(conversion: EnsembleConversion, model: ModelConfig, at: StepTensor): string {
  const names = model[at.side].map((tensor) => tensor.name)
  const declared =
    at.side === 'output' ? conversion.graph.declared[at.step]?.get(at.name) : undefined
  return declared !== undefined && names.includes(declared)
    ? `; outputMap goes from the model's output to the ensemble's tensor: want {${declared}: ${at.name}}`
    : hintOf(at.name, names)
}

/**
 * Returns the path at which a tensor of a step is written: in the outputMap of the step that makes it, else where it is read
 * first.
 */
function pathOf({ graph }: EnsembleConversion, { step, side, name }: StepTensor): string {
  const stepAt = stepPath(graph.spec, step)
  if (side === 'input') return graph.reads[step]?.get(name)?.path ?? stepAt
  if (graph.declared[step]?.has(name) === true) return `${stepAt}.outputMap[${name}]`
  const key = sourceKeyOf({ kind: 'made', step, output: name })
  const reads = [...graph.reads.flatMap((fed) => [...fed.values()]), ...graph.outputs]
  return reads.find((read) => read && sourceKeyOf(read.source) === key)?.path ?? stepAt
}

/** Finds the words by which a message calls the place that named a tensor first. */
function labelOf(conversion: EnsembleConversion, tensor: string, { at }: TensorDefinition): string {
  const { config, graph } = conversion
  if (at?.side === 'input') return pathOf(conversion, at)
  if (at !== undefined) return `${graph.spec.steps[at.step]?.name}.${at.name}`
  const input = config.input.findIndex(({ name }) => name === tensor)
  if (input !== -1) return `inputs[${input}](${tensor})`
  return `outputs[${config.output.findIndex(({ name }) => name === tensor)}](${tensor})`
}

/** Shows a tensor as `FP32[-1,3]`, with the batch dimension if there is one. */
function show({ dataType, fullDims }: TensorDefinition): string {
  return `${fromConfigDatatype(dataType) ?? dataType}${formatShape(fullDims)}`
}

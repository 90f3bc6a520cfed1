import type { BuiltinFault } from '@tutti/builtins'
import type { ModelConfig } from '@tutti/model-config'
import { formatShape, fromConfigDatatype } from '@tutti/tensor'
import type { ConditionFault, Place } from './condition-fault.ts'
import type { StructureFault } from './find-structure-faults.ts'
import type { TensorDefinition, TensorFault } from './find-tensor-faults.ts'
import type { AcceptedReason, Problem } from './problem.ts'
import type { Words } from './words.ts'

/** Says to its author what is wrong with a graph. */
export function describeStructure(fault: StructureFault, words: Words): Problem {
  switch (fault.kind) {
    case 'no model':
      return {
        reason: 'InvalidSpec',
        path: words.modelName(fault.step),
        message: 'got none, want a model',
      }
    case 'no inputs': {
      const message = `got no inputs, want them in ${words.inputMap}: a step reads something`
      return { reason: 'MissingInput', path: words.step(fault.step), message }
    }
    case 'no outputs': {
      const message = `nothing reads what it makes; ${words.wantedOutput}, or no such step`
      return { reason: 'UnreachableStep', path: words.step(fault.step), message }
    }
    case 'made twice': {
      const message = `'${fault.tensor}' is what ${words.tensor(fault.first)} makes; want another name`
      return { reason: 'MultipleProducers', path: words.tensor(fault.at), message }
    }
    case 'unread input': {
      const message = `no step reads '${fault.name}'; want it read, or removed`
      return { reason: 'UnusedInput', path: words.input(fault.index), message }
    }
    case 'unread tensor': {
      const message = `nothing reads '${fault.tensor}'; want it read or among the outputs, or not mapped`
      return { reason: 'UnreachableStep', path: words.tensor(fault.at), message }
    }
    case 'cycle':
  }
  const [first = 0] = fault.steps
  const way = [...fault.steps, first].map((step) => words.stepName(step)).join(' -> ')
  const message = `steps wait for one another: ${way}`
  return { reason: 'CycleDetected', path: words.step(first), message }
}

/** Says to its author where a step does not fit its model. */
export function describeTensors(
  { max_batch_size: maxBatchSize }: Pick<ModelConfig, 'max_batch_size'>,
  fault: TensorFault,
  words: Words,
): Problem {
  const { model, at } = fault
  const path = words.tensor(at)
  switch (fault.kind) {
    case 'batch': {
      const message = `got ${maxBatchSize}, want at most ${model.max_batch_size}: '${model.name}' of ${words.step(at.step)} takes no larger batches`
      return { reason: 'LimitExceeded', path: words.maxBatchSize, message }
    }
    case 'unfed': {
      const message = `the input '${at.name}' of '${model.name}' is fed by nothing: want a tensor ${show(fault.next)} in ${words.inputMap}`
      return { reason: 'MissingInput', path: words.step(at.step), message }
    }
    case 'several outputs':
      return {
        reason: 'MultipleProducers',
        path,
        message: `'${model.name}' has several outputs '${at.name}'`,
      }
    case 'unknown port': {
      const names = model[at.side].map(({ name }) => name)
      const message = `'${model.name}' has no ${at.side} '${at.name}'${words.portHint(at, names)}`
      return { reason: 'UnknownTensor', path, message }
    }
    case 'datatype':
    case 'shape':
  }
  const reason: AcceptedReason = fault.kind === 'datatype' ? 'DatatypeMismatch' : 'ShapeMismatch'
  const first = words.definition(fault.tensor, fault.first)
  const verb = at.side === 'input' ? 'takes' : 'makes'
  const message = `'${model.name}' ${verb} ${show(fault.next)}, ${first} is ${show(fault.first)}`
  return { reason, path, message }
}

/** Says to its author what is wrong with the built-in of a step, its options or what feeds it. */
export function describeBuiltin(
  { path: at, got, want }: BuiltinFault,
  step: number,
  words: Words,
): Problem {
  const input = at.startsWith(OF_INPUT) ? at.slice(OF_INPUT.length) : undefined
  const field = at === '' ? 'builtin' : `builtin.${at}`
  const message = `got ${got}, want ${want}`
  if (input === undefined) {
    return { reason: 'BuiltinInvalid', path: `${words.step(step)}.${field}`, message }
  }
  const path = words.tensor({ step, side: 'input', name: input })
  return { reason: 'BuiltinInvalid', path, message: `the input '${input}': ${message}` }
}

const OF_INPUT = 'inputs.'

/** Says to its author what is wrong with a condition, a constant or an absent tensor. */
export function describeCondition(
  { reason, at, got, want }: ConditionFault,
  words: Words,
): Problem {
  return { reason, path: pathOf(at, words), message: `got ${got}, want ${want}` }
}

function pathOf(at: Place, words: Words): string {
  if ('step' in at) return `${words.step(at.step)}.${at.field}`
  return 'output' in at
    ? `${words.output(at.output)}.${at.field}`
    : `inputs(${at.input}).${at.field}`
}

/** Shows a tensor as `FP32[-1,3]`, with the batch dimension if there is one. */
function show({ dataType, fullDims }: TensorDefinition): string {
  return `${fromConfigDatatype(dataType) ?? dataType}${formatShape(fullDims)}`
}

import type { DataType, ModelConfig, ModelInput, SequenceBatching } from '../model/model-config.ts'

type ControlMessage = SequenceBatching['control_input'][number]['control'][number]

export type SequenceControlKind = ControlMessage['kind']

/** An input by which the scheduler tells a model where a request stands in its sequence. */
export interface SequenceControl {
  readonly name: string
  readonly kind: SequenceControlKind
  readonly dataType: DataType
  /** Values that stand for false and true; empty for the correlation id. */
  readonly falseTrue: readonly (number | boolean)[]
}

/**
 * Lists the control inputs that a configuration declares. The datatype of a control follows from the field that holds its
 * values.
 */
export function sequenceControls(config: ModelConfig): readonly SequenceControl[] {
  const inputs = config.sequence_batching?.control_input ?? []
  return inputs.flatMap(({ name, control }) =>
    control.map((one) => ({ name, kind: one.kind, ...toValues(one) })),
  )
}

function toValues(control: ControlMessage): Pick<SequenceControl, 'dataType' | 'falseTrue'> {
  const { int32_false_true: ints, fp32_false_true: floats, bool_false_true: bools } = control
  if (control.kind === 'CONTROL_SEQUENCE_CORRID') {
    return { dataType: control.data_type, falseTrue: [] }
  }
  if (ints.length > 0) return { dataType: 'TYPE_INT32', falseTrue: ints }
  if (floats.length > 0) return { dataType: 'TYPE_FP32', falseTrue: floats }
  return { dataType: 'TYPE_BOOL', falseTrue: bools }
}

/**
 * Adds the tensors of the sequence scheduler to a configuration, as the model's file has them: control inputs and states.
 * Clients neither send nor see these tensors.
 *
 * @returns the same object for a model without sequences.
 */
export function withSequenceTensors(config: ModelConfig): ModelConfig {
  const { sequence_batching: batching } = config
  if (batching === undefined) return config
  const { state } = batching
  const controls = sequenceControls(config).map((c) => toInput(c.name, c.dataType, [1]))
  const before = state.map((s) => toInput(s.input_name, s.data_type, s.dims))
  const declared = new Set(config.output.map(({ name }) => name))
  const after = state
    .filter(({ output_name: name }) => !declared.has(name))
    .map((s) => ({ ...toTensor(s.output_name, s.data_type, s.dims), label_filename: '' }))
  return {
    ...config,
    input: [...config.input, ...controls, ...before],
    output: [...config.output, ...after],
  }
}

function toTensor(name: string, dataType: DataType, dims: readonly number[]) {
  return {
    name,
    data_type: dataType,
    dims,
    is_shape_tensor: false,
    is_non_linear_format_io: false,
  }
}

function toInput(name: string, dataType: DataType, dims: readonly number[]): ModelInput {
  const tensor = toTensor(name, dataType, dims)
  return { ...tensor, format: 'FORMAT_NONE', allow_ragged_batch: false, optional: false }
}

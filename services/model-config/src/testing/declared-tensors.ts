import type { DataType, ModelInput, ModelOutput } from '../model/model-config.ts'

/** A declared input; `rest` replaces what is to be different from its defaults. */
export function modelInput(
  name: string,
  dataType: DataType,
  dims: readonly number[],
  rest: Partial<ModelInput> = {},
): ModelInput {
  return {
    ...tensorFields(name, dataType, dims),
    format: 'FORMAT_NONE',
    allow_ragged_batch: false,
    optional: false,
    ...rest,
  }
}

/** A declared output; `rest` replaces what is to be different from its defaults. */
export function modelOutput(
  name: string,
  dataType: DataType,
  dims: readonly number[],
  rest: Partial<ModelOutput> = {},
): ModelOutput {
  return { ...tensorFields(name, dataType, dims), label_filename: '', ...rest }
}

function tensorFields(name: string, dataType: DataType, dims: readonly number[]) {
  const flags = { is_shape_tensor: false, is_non_linear_format_io: false }
  return { name, data_type: dataType, dims, ...flags }
}

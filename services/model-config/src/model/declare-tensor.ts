import { DATATYPES, type Datatype, type Shape } from '@tutti/tensor'
import type { ModelInput, ModelOutput } from './model-config.ts'

/** An input or output of a model: its dims are without a batch dimension. */
interface TensorDeclaration {
  readonly name: string
  readonly datatype: Datatype
  readonly dims: Shape
}

/** Makes the entry of a configuration for a required input about which nothing else is said. */
export function declareInput(tensor: TensorDeclaration): ModelInput {
  return {
    ...declare(tensor),
    format: 'FORMAT_NONE',
    allow_ragged_batch: false,
    optional: false,
  }
}

/** Makes the entry of a configuration for an output about which nothing else is said. */
export function declareOutput(tensor: TensorDeclaration): ModelOutput {
  return { ...declare(tensor), label_filename: '' }
}

function declare({ name, datatype, dims }: TensorDeclaration) {
  const { config: data_type } = DATATYPES[datatype]
  return { name, data_type, dims, is_shape_tensor: false, is_non_linear_format_io: false }
}

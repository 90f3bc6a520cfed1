import type { ModelConfig, ModelInput, ModelOutput } from '@tutti/model-config'
import type { Shape } from '@tutti/tensor'
import type { GraphStep } from './graph.ts'

/** Output of a step with `onItemError`: which items failed. */
export const FAILED = 'failed'
/** Output of a step that concatenates: the extent along axis 0 that each item made. */
export const LENGTHS = 'lengths'

/**
 * Returns the configuration of a step's model as the rest of the graph sees it. Where the step runs for each item, the inputs that are
 * cut and all outputs have a leading dimension of items, and there is no batch dimension beside it.
 */
export function signatureOf<M extends ModelConfig | undefined>(
  { forEach }: Pick<GraphStep, 'forEach'>,
  model: M,
): M | ModelConfig {
  if (forEach === undefined || model === undefined) return model
  const { items, gather } = forEach
  const made = madeByMap(forEach)
  const [like] = model.output
  return {
    ...model,
    max_batch_size: 0,
    // Without its items a step has nothing to do, even if the model may lack the input.
    input: model.input.map((input) =>
      items.includes(input.name) ? { ...rows(input), optional: false } : input,
    ),
    output: [
      ...model.output
        .filter(({ name }) => !made.some((one) => one.name === name))
        .map((output) => {
          const [, ...others] = output.dims
          return gather === 'Stack' ? rows(output) : reshaped(output, [-1, ...others])
        }),
      ...(like === undefined ? [] : made.map((one) => ({ ...reshaped(like, [-1]), ...one }))),
    ],
  }
}

/** Lists the outputs that running for each item adds to those of the model. */
export function madeByMap({
  gather,
  itemDefault,
}: Pick<NonNullable<GraphStep['forEach']>, 'gather' | 'itemDefault'>): readonly Pick<
  ModelOutput,
  'name' | 'data_type'
>[] {
  return [
    ...(itemDefault === undefined ? [] : [{ name: FAILED, data_type: 'TYPE_BOOL' } as const]),
    ...(gather === 'Concat' ? [{ name: LENGTHS, data_type: 'TYPE_INT64' } as const] : []),
  ]
}

function rows<T extends ModelInput | ModelOutput>(tensor: T): T {
  return reshaped(tensor, [-1, ...tensor.dims])
}

function reshaped<T extends ModelInput | ModelOutput>(tensor: T, dims: Shape): T {
  return { ...tensor, dims: [...dims] }
}

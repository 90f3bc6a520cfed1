import { ServeError } from '@tutti/errors'
import { elementCount, formatShape, type NamedTensor, type Shape } from '@tutti/tensor'
import type { ModelConfig } from '../model/model-config.ts'
import type { InputRule } from './request-rules.ts'

/**
 * Replaces each -1 of `to` with the extent that `shape` has at the corresponding -1 of `from`. `from` and `to` have equally
 * many -1s.
 */
export function carryExtents(from: Shape, shape: Shape, to: Shape): Shape {
  const extents = shape.filter((_, i) => from[i] === -1)
  let next = 0
  return to.map((extent) => (extent === -1 ? (extents[next++] ?? -1) : extent))
}

/**
 * Gives an input the shape that the model sees, which is `reshape` if the model declares one. Returns a new tensor; the data is
 * not copied.
 */
export function applyInputReshape(
  config: ModelConfig,
  tensor: NamedTensor,
  { dims, reshape = dims }: InputRule,
): NamedTensor {
  const batchRank = config.max_batch_size > 0 ? 1 : 0
  const item = carryExtents(dims, tensor.shape.slice(batchRank), reshape)
  return { ...tensor, shape: [...tensor.shape.slice(0, batchRank), ...item] }
}

/**
 * Gives an output the shape that the configuration declares, if the model makes it in another shape (`reshape`).
 *
 * @param output - as the model made it, with its batch dimension if the model batches.
 * @param batchSize - of the request; messages name it. The output may have another one.
 * @returns `output` itself if its configuration has no reshape; the data is never copied.
 * @throws ServeError RESPONSE_INVALID if the shape is not the one that `reshape` declares.
 */
export function applyOutputReshape(
  config: ModelConfig,
  output: NamedTensor,
  batchSize: number,
): NamedTensor {
  const declared = config.output.find((io) => io.name === output.name)
  if (declared?.reshape === undefined) return output
  const batchRank = config.max_batch_size > 0 ? 1 : 0
  const batch = output.shape.slice(0, batchRank)
  const item = output.shape.slice(batchRank)
  const { shape } = declared.reshape
  const fits = shape.length === item.length && shape.every((e, i) => e === -1 || e === item[i])
  const reshaped = [...batch, ...carryExtents(shape, item, declared.dims)]
  if (!fits || elementCount(reshaped) !== elementCount(output.shape)) {
    const want = batchRank === 1 ? [batchSize, ...shape] : shape
    throw new ServeError(
      'RESPONSE_INVALID',
      `output '${output.name}' of model '${config.name}': shape ${formatShape(output.shape)}, want ${formatShape(want)}`,
      { details: { model: config.name, field: output.name } },
    )
  }
  return { ...output, shape: reshaped }
}

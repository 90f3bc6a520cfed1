import type { NamedTensor, Shape, StepRequest } from '@tutti/tensor'

/*
 * Several requests in one run, along dimension 0. A request that is alone needs nothing of this.
 */

/** Groups requests that can go through a model in one run: those without a batch dimension go alone. */
export function joinRequests<R extends { readonly request: StepRequest }>(
  requests: readonly R[],
): R[][] {
  const groups = Map.groupBy(requests, (one) => (one.request.batchSize > 0 ? batchKey(one) : one))
  return [...groups.values()]
}

/** Equal keys can be concatenated: the same inputs with the same extents behind the batch dimension. */
function batchKey({ request }: { readonly request: StepRequest }): string {
  const parts = request.inputs.map(({ name, shape }) => `${name}:${shape.slice(1).join(',')}`)
  return parts.toSorted().join(';')
}

/** The shape of tensors one behind the other. */
export function joinShapes(tensors: readonly NamedTensor[]): Shape {
  const batch = tensors.reduce((sum, { shape }) => sum + (shape[0] ?? 0), 0)
  return [batch, ...(tensors[0]?.shape.slice(1) ?? [])]
}

/** Splits an output into batches of these sizes, which add up to its own; views, not copies. */
export function splitBatch(output: NamedTensor, sizes: readonly number[]): readonly NamedTensor[] {
  const { name, datatype, shape, data } = output
  const [total = 0, ...rest] = shape
  const perItem = rest.reduce((product, extent) => product * extent, 1)
  let end = 0
  return sizes.map((size) => {
    const begin = end
    end =
      datatype === 'BYTES'
        ? endOfTexts(data, begin, size * perItem)
        : begin + (size * data.byteLength) / total
    return { name, datatype, shape: [size, ...rest], data: data.subarray(begin, end) }
  })
}

/** Where `count` elements end that begin at `begin`. */
function endOfTexts(data: Uint8Array, begin: number, count: number): number {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  let end = begin
  for (let i = 0; i < count; i += 1) end += 4 + view.getUint32(end, true)
  return end
}

import { elementCount, type NamedTensor, type Shape, type StepRequest } from '@tutti/tensor'
import type { OnnxContext } from './onnx-context.ts'
import { type BatchedRequests, batchInputs, type RaggedRules, tensorsOf } from './ragged.ts'
import type { RunInput } from './session-contract.ts'

/*
 * Several requests in one run, along dimension 0. A request that is alone needs nothing of this.
 */

/** Groups requests that can share one run. A request without a batch dimension gets a group of its own. */
export function joinRequests<R extends { readonly request: StepRequest }>(
  requests: readonly R[],
  ragged?: RaggedRules,
): R[][] {
  const keyOf = (one: R) => (one.request.batchSize > 0 ? batchKey(one.request, ragged) : one)
  return [...Map.groupBy(requests, keyOf).values()]
}

/**
 * Builds a key. Requests with equal keys can be concatenated: they have the same inputs, with the same extents behind the batch
 * dimension unless they are ragged.
 */
function batchKey({ inputs }: StepRequest, ragged: RaggedRules | undefined): string {
  const parts = inputs.map(({ name, shape }) =>
    ragged?.inputs.has(name) ? name : `${name}:${shape.slice(1).join(',')}`,
  )
  return parts.toSorted().join(';')
}

/**
 * Joins the inputs of requests for one run: along dimension 0, or flat if they are ragged. The batch inputs, which describe
 * ragged ones, are added.
 */
export function joinInputs({ inputs, ragged }: OnnxContext, requests: BatchedRequests): RunInput[] {
  const names = requests[0]?.request.inputs.map(({ name }) => name) ?? []
  const joined = names.map((name): RunInput => {
    const { index = 0, isVector } = inputs.get(name) ?? {}
    const parts = tensorsOf(requests, name)
    const dims = ragged?.inputs.has(name) ? flatShape(parts) : joinShapes(parts)
    return { index, dims: isVector ? [] : dims, parts }
  })
  if (ragged === undefined) return joined
  const made = batchInputs(ragged, requests).map(({ name, ...tensor }) => {
    return { ...tensor, index: inputs.get(name)?.index ?? 0 }
  })
  return [...joined, ...made]
}

function flatShape(tensors: readonly NamedTensor[]): Shape {
  return [tensors.reduce((sum, { shape }) => sum + elementCount(shape), 0)]
}

/** Joins the shapes of tensors that are placed one behind the other. */
function joinShapes(tensors: readonly NamedTensor[]): Shape {
  const batch = tensors.reduce((sum, { shape }) => sum + (shape[0] ?? 0), 0)
  return [batch, ...(tensors[0]?.shape.slice(1) ?? [])]
}

/** Splits an output into batches. @param sizes - of the batches; they add up to the output's own. @returns views, not copies. */
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

/** Finds the end of the `count` elements that begin at `begin`. */
function endOfTexts(data: Uint8Array, begin: number, count: number): number {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  let end = begin
  for (let i = 0; i < count; i += 1) end += 4 + view.getUint32(end, true)
  return end
}

import type { BatchInput, ModelConfig } from '@tutti/model-config'
import {
  DATATYPES,
  elementCount,
  fromConfigDatatype,
  type NamedTensor,
  type Shape,
  type StepRequest,
} from '@tutti/tensor'
import { refuseScatter } from './run-errors.ts'

/*
 * Ragged batches, as Triton's backends make them: requests with other shapes of one input share a run, as one flat tensor. Batch
 * inputs tell the model where each request's part is; batch outputs are split by the shapes of an input.
 */

export type BatchedRequests = readonly { readonly request: StepRequest }[]

/** The rules of a configuration for ragged batches. */
export interface RaggedRules {
  readonly model: string
  /** Inputs that are joined flat. */
  readonly inputs: ReadonlySet<string>
  readonly batchInputs: readonly BatchInput[]
  readonly batchOutputs: ReadonlyMap<string, BatchOutputRule>
}

interface BatchOutputRule {
  readonly source: string
  /** Dimensions, with the batch dimension if the model has one. A -1 stands for the source's extent at the same place. */
  readonly dims: Shape
  /** Bytes of an element. */
  readonly itemSize: number
}

/** Reads the rules for ragged batches from a configuration. @returns undefined if it has none, as nearly all. */
export function toRaggedRules(config: ModelConfig): RaggedRules | undefined {
  const inputs = new Set(config.input.filter((one) => one.allow_ragged_batch).map((i) => i.name))
  const batchOutputs = new Map<string, BatchOutputRule>()
  for (const {
    target_name: targets,
    source_input: [source = ''],
  } of config.batch_output) {
    for (const { name, dims, reshape, data_type: type } of config.output) {
      if (!targets.includes(name)) continue
      const { itemSize } = DATATYPES[fromConfigDatatype(type) ?? 'BYTES']
      const seen = reshape?.shape ?? dims
      const full = config.max_batch_size > 0 ? [-1, ...seen] : seen
      batchOutputs.set(name, { source, dims: full, itemSize: itemSize ?? 0 })
    }
  }
  if (inputs.size + config.batch_input.length + batchOutputs.size === 0) return undefined
  return { model: config.name, inputs, batchInputs: config.batch_input, batchOutputs }
}

/** Makes the batch inputs for a run of these requests, with their names. */
export function batchInputs(rules: RaggedRules, requests: BatchedRequests) {
  return rules.batchInputs.flatMap((rule) => {
    const { dims, values } = MAKERS[rule.kind](tensorsOf(requests, rule.source_input[0] ?? ''))
    const numbers =
      rule.data_type === 'TYPE_FP32' ? new Float32Array(values) : new Int32Array(values)
    const parts = [{ data: new Uint8Array(numbers.buffer) }]
    return rule.target_name.map((name) => ({ name, dims, parts }))
  })
}

/**
 * Splits an output by the shapes of its source input: one view for each request. Elements beyond the last view are left out.
 *
 * @returns undefined for an output that is no batch output.
 * @throws ServeError RESPONSE_INVALID if there are too few elements.
 */
export function scatter(
  { batchOutputs, model }: RaggedRules,
  output: NamedTensor,
  requests: BatchedRequests,
): readonly NamedTensor[] | undefined {
  const rule = batchOutputs.get(output.name)
  if (rule === undefined) return undefined
  const { name, datatype, data } = output
  let end = 0
  const parts = tensorsOf(requests, rule.source).map(({ shape: source }) => {
    const shape = rule.dims.map((extent, i) => (extent === -1 ? (source[i] ?? 1) : extent))
    const begin = end
    end += elementCount(shape) * rule.itemSize
    return { name, datatype, shape, data: data.subarray(begin, end) }
  })
  if (end > data.byteLength) refuseScatter(model, output, end / rule.itemSize, rule.source)
  return parts
}

/** Finds the tensor `name` of each request that has it. */
export function tensorsOf(requests: BatchedRequests, name: string): NamedTensor[] {
  return requests.flatMap(({ request }) => request.inputs.filter((tensor) => tensor.name === name))
}

/** The contents of a batch input. */
interface Made {
  readonly dims: Shape
  readonly values: readonly number[]
}

/**
 * Functions that make a batch input from the source of each request. Elements count with their batch, and each request once;
 * shapes are those of each item.
 */
const MAKERS: Readonly<Record<BatchInput['kind'], (sources: readonly NamedTensor[]) => Made>> = {
  BATCH_ELEMENT_COUNT: (sources) => toVector(countsOf(sources)),
  BATCH_ACCUMULATED_ELEMENT_COUNT: (sources) => toVector(endsOf(sources)),
  BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO: (sources) => toVector([0, ...endsOf(sources)]),
  // The shape is what counts.
  BATCH_MAX_ELEMENT_COUNT_AS_SHAPE: (sources) =>
    toVector(Array.from({ length: Math.max(...countsOf(sources)) }, () => 0)),
  BATCH_ITEM_SHAPE: (sources) => {
    const items = itemShapes(sources)
    return { dims: [items.length, items[0]?.length ?? 0], values: items.flat() }
  },
  BATCH_ITEM_SHAPE_FLATTEN: (sources) => toVector(itemShapes(sources).flat()),
}

function toVector(values: readonly number[]): Made {
  return { dims: [values.length], values }
}

function countsOf(sources: readonly NamedTensor[]): number[] {
  return sources.map(({ shape }) => elementCount(shape))
}

function endsOf(sources: readonly NamedTensor[]): number[] {
  let end = 0
  return countsOf(sources).map((count) => (end += count))
}

function itemShapes(sources: readonly NamedTensor[]): Shape[] {
  return sources.flatMap(({ shape: [batch = 0, ...item] }) =>
    Array.from({ length: batch }, () => item),
  )
}

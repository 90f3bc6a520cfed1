import { isUtf8 } from 'node:buffer'
import { ServeError } from '@tutti/errors'
import { decodeBytesTensor, type NamedTensor, type Shape, type StepRequest } from '@tutti/tensor'
import type { OnnxPort, OnnxPorts } from '../onnx/model-ports.ts'
import { type Planned, planRequest, type SlotRequest, type SlotWriter } from './slot.ts'

/** A request of an `execute` call with its place there. */
export interface PlacedRequest {
  readonly position: number
  readonly request: StepRequest
}

/** Requests that go through the model in one run. */
export type Run = readonly PlacedRequest[]

/** What a run needs of its model. */
export interface BatchContext {
  readonly model: string
  readonly ports: OnnxPorts
  /** Port indexes by name. */
  readonly inputIndex: ReadonlyMap<string, number>
  readonly outputIndex: ReadonlyMap<string, number>
  /** Scalar outputs that the configuration declares as [1]. */
  readonly vectorOutputs: ReadonlySet<string>
}

const NUL = 0

function refuse(
  context: BatchContext,
  reason: 'INVALID_REQUEST' | 'INVALID_TENSOR_DATA',
  text: string,
): never {
  throw new ServeError(reason, `${text} for model '${context.model}'`)
}

/** The binding carries texts as C strings: it cuts them at NUL and garbles what is not UTF-8. */
function checkTexts(context: BatchContext, tensor: NamedTensor): void {
  decodeBytesTensor(tensor.data).forEach((element, i) => {
    const where = `input '${tensor.name}' element ${i}`
    if (element.includes(NUL)) {
      refuse(
        context,
        'INVALID_TENSOR_DATA',
        `${where} holds a NUL byte, want UTF-8 text without NUL`,
      )
    }
    if (!isUtf8(element)) {
      refuse(context, 'INVALID_TENSOR_DATA', `${where} is not UTF-8, want UTF-8 text without NUL`)
    }
  })
}

/** @throws ServeError for what would fail the whole run: it must fail this request alone. */
export function checkRequest(context: BatchContext, request: StepRequest): void {
  for (const tensor of request.inputs) {
    const index = context.inputIndex.get(tensor.name)
    const port = index === undefined ? undefined : context.ports.inputs[index]
    if (port === undefined)
      refuse(context, 'INVALID_REQUEST', `unexpected inference input '${tensor.name}'`)
    if (port.datatype !== tensor.datatype) {
      throw new ServeError(
        'DATATYPE_MISMATCH',
        `input '${tensor.name}' of model '${context.model}': datatype ${tensor.datatype}, want ${port.datatype}`,
      )
    }
    if (tensor.datatype === 'BYTES') checkTexts(context, tensor)
  }
  for (const name of request.requestedOutputs) {
    if (!context.outputIndex.has(name)) {
      refuse(context, 'INVALID_REQUEST', `unexpected inference output '${name}'`)
    }
  }
}

/** Equal keys can be concatenated: the same inputs with the same extents behind the batch dimension. */
function batchKey(request: StepRequest): string {
  const parts = request.inputs.map(({ name, shape }) => `${name}:${shape.slice(1).join(',')}`)
  return parts.toSorted().join(';')
}

/** Splits requests into runs. Requests without a batch dimension go alone. */
export function planRuns(requests: readonly PlacedRequest[]): Run[] {
  const [first] = requests
  if (first === undefined) return []
  if (requests.length === 1) return [requests]
  const runs: PlacedRequest[][] = []
  const open = new Map<string, PlacedRequest[]>()
  for (const placed of requests) {
    const isBatched = placed.request.batchSize > 0
    const key = isBatched ? batchKey(placed.request) : ''
    const run = isBatched ? open.get(key) : undefined
    if (run !== undefined) {
      run.push(placed)
      continue
    }
    const opened = [placed]
    runs.push(opened)
    if (isBatched) open.set(key, opened)
  }
  return runs
}

function wantedOutputs(context: BatchContext, run: Run): number[] {
  const wanted = new Set<number>()
  for (const { request } of run) {
    if (request.requestedOutputs.length === 0) return context.ports.outputs.map((_, i) => i)
    for (const name of request.requestedOutputs) wanted.add(context.outputIndex.get(name) ?? 0)
  }
  return [...wanted].toSorted((a, b) => a - b)
}

/** The tensors that make one input of a run, in the order of its requests. */
function partsOf(run: Run, name: string): readonly NamedTensor[] {
  const parts: NamedTensor[] = []
  for (const { request } of run) {
    for (const tensor of request.inputs) if (tensor.name === name) parts.push(tensor)
  }
  return parts
}

function joinedShape(port: OnnxPort | undefined, parts: readonly NamedTensor[]): Shape {
  const shape = parts[0]?.shape ?? []
  if (parts.length > 1) {
    return [parts.reduce((sum, part) => sum + (part.shape[0] ?? 0), 0), ...shape.slice(1)]
  }
  // The configuration can only write a scalar as [1].
  return port?.dims?.length === 0 && shape.length === 1 && shape[0] === 1 ? [] : shape
}

/** A run's inputs, planned into a record of a slot and not yet copied. They are viewed until then. */
export class PackedRun {
  readonly #planned: Planned<SlotRequest>
  readonly #parts: readonly (readonly NamedTensor[])[]

  /** Plans the inputs of a run, concatenated along dimension 0. */
  constructor(context: BatchContext, run: Run) {
    const inputs = run[0]?.request.inputs ?? []
    this.#parts = inputs.map(({ name }) => partsOf(run, name))
    const sizes = inputs.map(({ name }, i) => {
      const index = context.inputIndex.get(name) ?? 0
      const tensors = this.#parts[i] ?? []
      let byteLength = 0
      for (const { data } of tensors) byteLength += data.byteLength
      return { index, dims: joinedShape(context.ports.inputs[index], tensors), byteLength }
    })
    this.#planned = planRequest(sizes, wantedOutputs(context, run))
  }

  /** What the record takes of its slot, in bytes. */
  get size(): number {
    return this.#planned.size
  }

  /** Copies the inputs: the one copy that they make on their way to the engine. */
  write(writer: SlotWriter): void {
    const begin = writer.addRequest(this.#planned)
    this.#planned.record.inputs.forEach((input, i) => {
      let offset = begin + input.byteOffset
      for (const { data } of this.#parts[i] ?? []) {
        writer.bytes.set(data, offset)
        offset += data.byteLength
      }
    })
  }
}

/** The byte positions between requests; requests have `counts` elements each. */
function splitBytes(data: Uint8Array, counts: readonly number[]): number[] {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  let offset = 0
  return counts.map((count) => {
    for (let i = 0; i < count; i += 1) offset += 4 + view.getUint32(offset, true)
    return offset
  })
}

/**
 * Splits one output of a run along dimension 0.
 *
 * @returns one value per request, in order; views, not copies.
 * @throws ServeError RESPONSE_INVALID if dimension 0 is not the batch of the run.
 */
export function splitOutput(
  context: BatchContext,
  run: Run,
  output: NamedTensor,
): readonly NamedTensor[] {
  const { datatype, shape, data, name } = output
  const sizes = run.map(({ request }) => request.batchSize)
  let total = 0
  for (const size of sizes) total += size
  if (total === 0) return [context.vectorOutputs.has(name) ? { ...output, shape: [1] } : output]
  if (shape[0] !== total) {
    throw new ServeError(
      'RESPONSE_INVALID',
      `output '${name}' of model '${context.model}': shape [${shape.join(',')}], want ${total} in the batch dimension`,
    )
  }
  if (run.length === 1) return [output]
  const rest = shape.slice(1)
  const perItem = rest.reduce((product, extent) => product * extent, 1)
  const ends =
    datatype === 'BYTES'
      ? splitBytes(
          data,
          sizes.map((size) => size * perItem),
        )
      : cumulate(sizes.map((size) => (size * data.byteLength) / total))
  return sizes.map((size, i) => ({
    name,
    datatype,
    shape: [size, ...rest],
    data: data.subarray(ends[i - 1] ?? 0, ends[i]),
  }))
}

function cumulate(sizes: readonly number[]): number[] {
  let sum = 0
  return sizes.map((size) => {
    sum += size
    return sum
  })
}

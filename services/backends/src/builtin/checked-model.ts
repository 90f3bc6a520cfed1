import { type ConfiguredBuiltin, type Port, signatureOf } from '@tutti/builtins'
import { ServeError } from '@tutti/errors'
import { DATATYPES, elementCount, type NamedTensor, type StepRequest } from '@tutti/tensor'
import type { BatchOptions, EngineRequest, ExecutionTimes, LoadedModel } from '../engine.ts'
import { MAX_OUTPUT_BYTES } from './output-bound.ts'

/** Bytes of a text in an output, at least. */
const TEXT_BYTES = 4

/**
 * A built-in that holds each request against the signature, now that all extents are known, so that errors name the input or the option and
 * no output is larger than the bound.
 */
export class CheckedModel implements LoadedModel {
  readonly openExecutions: number
  readonly #model: LoadedModel
  readonly #builtin: ConfiguredBuiltin

  constructor(model: LoadedModel, builtin: ConfiguredBuiltin) {
    this.openExecutions = model.openExecutions ?? 1
    this.#model = model
    this.#builtin = builtin
  }

  execute(batch: readonly EngineRequest[], o: BatchOptions): Promise<ExecutionTimes> {
    const fitting = batch.filter(({ request, sink }) => {
      const { problem, empty } = checkRequest(this.#builtin, request)
      if (problem !== undefined) sink.fail(problem, 'no')
      if (empty !== undefined) {
        sink.send({ index: 0, final: true, parameters: new Map(), outputs: empty })
      }
      return problem === undefined && empty === undefined
    })
    return this.#model.execute(fitting, o)
  }

  close(): Promise<void> {
    return this.#model.close()
  }
}

/** A request that is not to be executed: what is wrong with it, or its outputs. */
interface CheckedRequest {
  readonly problem?: ServeError
  /** Outputs that have no elements. Operators of the runtime give such ones a wrong shape, or end the process (TopK divides by 0). */
  readonly empty?: readonly NamedTensor[]
}

function checkRequest(
  { builtin, options }: ConfiguredBuiltin,
  { inputs, requestedOutputs }: StepRequest,
): CheckedRequest {
  const feeding = inputs.map(
    ({ name, datatype, shape }) => [name, { datatype, dims: shape }] as const,
  )
  const { ports, faults } = signatureOf(builtin, options, new Map(feeding))
  const [fault] = faults
  if (fault !== undefined) {
    const text = `built-in ${builtin.name}, ${fault.path}: got ${fault.got}, want ${fault.want}`
    const details = { field: fault.path }
    return { problem: new ServeError('SHAPE_MISMATCH', text, { details }) }
  }
  const outputs = ports?.outputs ?? []
  const bytes = outputs.reduce((sum, port) => sum + bytesOf(port), 0)
  if (bytes > MAX_OUTPUT_BYTES) {
    const text = `built-in ${builtin.name}: its outputs would have ${bytes} bytes, want at most ${MAX_OUTPUT_BYTES}`
    return { problem: new ServeError('MESSAGE_TOO_LARGE', text) }
  }
  if (!outputs.every(isEmpty)) return {}
  const wanted = outputs.filter(
    ({ name }) => requestedOutputs.length === 0 || requestedOutputs.includes(name),
  )
  return { empty: wanted.map((port) => toEmpty(port)) }
}

/** Whether an output has no elements, and all its extents are known. */
function isEmpty({ dims }: Port): boolean {
  return dims.includes(0) && !dims.includes(-1)
}

function toEmpty({ name, datatype, dims }: Port): NamedTensor {
  return { name, datatype, shape: dims, data: new Uint8Array() }
}

/** Counts the bytes of an output; an extent that depends on values counts as 1. */
function bytesOf({ datatype, dims }: Port): number {
  return elementCount(dims.map(Math.abs)) * (DATATYPES[datatype].itemSize ?? TEXT_BYTES)
}

import { type ConfiguredBuiltin, type Port, signatureOf } from '@tutti/builtins'
import { ServeError } from '@tutti/errors'
import {
  elementCount,
  encodeElements,
  type NamedTensor,
  repeatBytes,
  type StepRequest,
} from '@tutti/tensor'
import type { BatchOptions, EngineRequest, ExecutionTimes, LoadedModel } from '../engine.ts'
import { checkOutputs } from './count-outputs.ts'

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
      try {
        const empty = checkRequest(this.#builtin, request)
        if (empty === undefined) return true
        sink.send({ index: 0, final: true, parameters: new Map(), outputs: empty })
      } catch (error) {
        sink.fail(ServeError.from(error), 'no')
      }
      return false
    })
    return this.#model.execute(fitting, o)
  }

  close(): Promise<void> {
    return this.#model.close()
  }
}

/**
 * Checks a request.
 *
 * @returns the outputs if they have no elements, or are made of none: for such ones operators of the runtime give a wrong shape, or end the process
 * (TopK divides by 0).
 * @throws ServeError for what does not fit.
 */
function checkRequest(
  configured: ConfiguredBuiltin,
  request: StepRequest,
): readonly NamedTensor[] | undefined {
  const { builtin, options } = configured
  const feeding = request.inputs.map(
    ({ name, datatype, shape }) => [name, { datatype, dims: shape }] as const,
  )
  const { ports, faults } = signatureOf(builtin, options, new Map(feeding))
  const [fault] = faults
  if (fault !== undefined) {
    const text = `built-in ${builtin.name}, ${fault.path}: got ${fault.got}, want ${fault.want}`
    throw new ServeError('SHAPE_MISMATCH', text, { details: { field: fault.path } })
  }
  const outputs = ports?.outputs ?? []
  checkOutputs(configured, outputs, request)
  const value = request.inputs.some(({ shape }) => shape.includes(0))
    ? builtin.valueOfNothing?.(options)
    : undefined
  if (value === undefined && !outputs.every(isEmpty)) return undefined
  const { requestedOutputs } = request
  const wanted = outputs.filter(
    ({ name }) => requestedOutputs.length === 0 || requestedOutputs.includes(name),
  )
  return wanted.map((port) => filledWith(port, value ?? 0))
}

/** Whether an output has no elements, and all its extents are known. */
function isEmpty({ dims }: Port): boolean {
  return dims.includes(0) && !dims.includes(-1)
}

/** @param value - not read for BYTES, which such an output has only without elements. */
function filledWith({ name, datatype, dims }: Port, value: number): NamedTensor {
  const count = elementCount(dims)
  const data = encodeElements(datatype, count === 0 ? [] : [value])
  return { name, datatype, shape: dims, data: repeatBytes(data, count) }
}

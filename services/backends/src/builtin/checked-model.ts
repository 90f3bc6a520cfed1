import { type ConfiguredBuiltin, type Port, signatureOf } from '@tutti/builtins'
import { ServeError } from '@tutti/errors'
import { DATATYPES, elementCount, type StepRequest } from '@tutti/tensor'
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
      const problem = findProblem(this.#builtin, request)
      if (problem !== undefined) sink.fail(problem, 'no')
      return problem === undefined
    })
    return this.#model.execute(fitting, o)
  }

  close(): Promise<void> {
    return this.#model.close()
  }
}

function findProblem(
  { builtin, options }: ConfiguredBuiltin,
  { inputs }: StepRequest,
): ServeError | undefined {
  const feeding = inputs.map(
    ({ name, datatype, shape }) => [name, { datatype, dims: shape }] as const,
  )
  const { ports, faults } = signatureOf(builtin, options, new Map(feeding))
  const [fault] = faults
  if (fault !== undefined) {
    const text = `built-in ${builtin.name}, ${fault.path}: got ${fault.got}, want ${fault.want}`
    return new ServeError('SHAPE_MISMATCH', text, { details: { field: fault.path } })
  }
  const bytes = ports?.outputs.reduce((sum, port) => sum + bytesOf(port), 0) ?? 0
  if (bytes <= MAX_OUTPUT_BYTES) return undefined
  const text = `built-in ${builtin.name}: its outputs would have ${bytes} bytes, want at most ${MAX_OUTPUT_BYTES}`
  return new ServeError('MESSAGE_TOO_LARGE', text)
}

/** Counts the bytes of an output; an extent that depends on values counts as 1. */
function bytesOf({ datatype, dims }: Port): number {
  return elementCount(dims.map(Math.abs)) * (DATATYPES[datatype].itemSize ?? TEXT_BYTES)
}

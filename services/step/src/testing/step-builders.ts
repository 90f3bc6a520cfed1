import type { ServeError } from '@tutti/errors'
import {
  type Executed,
  type NamedTensor,
  type RequestContext,
  type StepRequest,
  type StepResponse,
  type StepTimes,
} from '@tutti/tensor'
import { RecordedResponses, requestContext } from '@tutti/tensor/testing'

export { requestContext } from '@tutti/tensor/testing'

/** FP32 tensor of zeros. */
export function floats(name: string, shape: readonly number[]): NamedTensor {
  const count = shape.reduce((product, extent) => product * extent, 1)
  return { name, datatype: 'FP32', shape, data: new Uint8Array(4 * count) }
}

/** A request with one input `x` of shape `[batch, width]`, as a step's request check returns it. */
export function batchRequest(
  o: { readonly batch?: number; readonly width?: number } & Partial<RequestContext> = {},
): StepRequest {
  const { batch = 1, width = 4, ...context } = o
  return {
    context: requestContext(context),
    inputs: [floats('x', [batch, width])],
    requestedOutputs: [],
    batchSize: batch,
  }
}

/** A sink that keeps what it gets, a failure as the last response, and notes the order among sinks that share `order`. */
export class RecordingSink extends RecordedResponses {
  /** Set by a failure. */
  executed: Executed | undefined
  readonly #name: string
  readonly #order: string[]

  constructor(name = '', order: string[] = []) {
    super()
    this.#name = name
    this.#order = order
  }

  override send(response: StepResponse): void {
    super.send(response)
    if (response.final) this.#order.push(this.#name)
  }

  override fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    super.fail(error, executed, times)
    this.executed = executed
    this.#order.push(this.#name)
  }

  /** `CODE REASON text` of the failure, 'OK' for a final response, '' as long as there is none. */
  get outcome(): string {
    const final = this.responses.find((response) => response.final)
    if (final === undefined) return ''
    const { error } = final
    return error === undefined ? 'OK' : `${error.code} ${error.reason} ${error.message}`.trimEnd()
  }
}

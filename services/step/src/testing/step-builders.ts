import {
  EMPTY_CONTEXT,
  type NamedTensor,
  type RequestContext,
  type StepRequest,
} from '@tutti/tensor'
import type { BearerResponse, EnvelopeSink } from '@tutti/transport'

/** The context of a client that says nothing. */
export function requestContext(rest: Partial<RequestContext> = {}): RequestContext {
  return {
    ...EMPTY_CONTEXT,
    ...rest,
  }
}

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

/** A sink that keeps what it gets, and notes the order among sinks that share `order`. */
export class RecordingSink implements EnvelopeSink {
  readonly responses: BearerResponse[] = []
  readonly #name: string
  readonly #order: string[]

  constructor(name = '', order: string[] = []) {
    this.#name = name
    this.#order = order
  }

  send(response: BearerResponse): void {
    this.responses.push(response)
    if (response.final) this.#order.push(this.#name)
  }

  /** `CODE REASON text` of the final error, 'OK' for a result, '' as long as there is none. */
  get outcome(): string {
    const final = this.responses.find((response) => response.final)
    if (final === undefined) return ''
    const { error } = final
    return error === undefined ? 'OK' : `${error.code} ${error.reason} ${error.message}`.trimEnd()
  }
}

import type { ServeError } from '@tutti/errors'
import type { NamedTensor, Parameters } from './tensor.ts'

/** What travels unchanged from the client's request to every step that works on it (triton-semantics 1.7). */
export interface RequestContext {
  /** The client's request id; '' if none. */
  readonly id: string
  /** Triton's correlation id: 0n or '' means none. */
  readonly correlationId: bigint | string
  readonly sequenceStart: boolean
  readonly sequenceEnd: boolean
  /** 0n is the model's default level. */
  readonly priority: bigint
  /** Triton's queue timeout in microseconds, not a deadline; 0n means none. */
  readonly timeoutUs: bigint
  /** Custom parameters. */
  readonly parameters: Parameters
}

/** One request as a step or an engine gets it. An optional input that is absent is not in `inputs`. */
export interface StepRequest {
  readonly context: RequestContext
  readonly inputs: readonly NamedTensor[]
  /** Names of the outputs wanted; empty means all. */
  readonly requestedOutputs: readonly string[]
  /** Items in the batch dimension; 0 for a model without one. */
  readonly batchSize: number
}

/** One response of an execution. An execution is a sequence of these: `index` counts from 0, exactly one is `final`. */
export interface StepResponse {
  readonly index: number
  readonly final: boolean
  /** Empty for an empty final response. */
  readonly outputs: readonly NamedTensor[]
  readonly parameters: Parameters
  /** Set instead of outputs; an error is always final. */
  readonly error?: ServeError
}

/** Where an engine puts responses. `request` is the position in the array given to `execute`. */
export interface ResponseSink {
  send(request: number, response: StepResponse): void
}

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

/** Of a request that says nothing about itself. */
export const EMPTY_CONTEXT: RequestContext = {
  id: '',
  correlationId: 0n,
  sequenceStart: false,
  sequenceEnd: false,
  priority: 0n,
  timeoutUs: 0n,
  parameters: new Map(),
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

/**
 * Where an engine puts responses. `request` is the position in the array given to `execute`.
 *
 * An engine that gives one response for each request just calls `send`. One that streams many (a decoupled model) asks for
 * room between two of them, so that a slow reader slows it down and nothing piles up in between:
 * `send(i, response); await sink.room?.(i)`.
 */
export interface ResponseSink {
  /**
   * Takes a response; never waits and never throws. What is sent although there was no room is taken too, up to a bound
   * (1024 responses or 256 MiB of outputs since there was room last); beyond it the request ends with OVERLOADED.
   * After the request has ended (its final response, a cancel, its deadline) everything is dropped.
   */
  send(request: number, response: StepResponse): void
  /**
   * Asks whether the request may have a further response now.
   *
   * @returns undefined if it may, at once and without a promise; else a promise that resolves when it may, or when the
   * request has ended and whatever is sent for it is dropped. It never rejects. Each request has room of its own: another
   * request of the same `execute` may go on meanwhile. A sink without this method takes everything.
   */
  room?(request: number): Promise<void> | undefined
}

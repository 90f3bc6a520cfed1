import type { Reason, ServeError } from '@tutti/errors'
import type { NamedTensor, Parameters } from './tensor.ts'

/** The data that travel unchanged from the client's request to every step that works on it (triton-semantics 1.7). */
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

/** The context of a request that says nothing about itself. */
export const EMPTY_CONTEXT: RequestContext = {
  id: '',
  correlationId: 0n,
  sequenceStart: false,
  sequenceEnd: false,
  priority: 0n,
  timeoutUs: 0n,
  parameters: new Map(),
}

/**
 * Bytes that their owner lends: they are valid for a while that the lender's type names, and longer for a reader that retains
 * them. Memory that is used again (shared memory, caches) is lent so; ordinary memory is not, and the collector frees it.
 */
export interface Lent {
  /**
   * Keeps the bytes valid beyond the time for which they were lent. Absent for ordinary memory. An own property, which wrappers
   * that copy the object keep.
   *
   * @returns gives the bytes back. The one that retained them calls it once, after its last read.
   */
  readonly retain?: () => () => void
}

/**
 * One request to a model, be it a client's, a step's of an ensemble or another model's. Its bytes are lent until the executor
 * has sent the final response or the failure: an executor that reads on (an execution that was abandoned) retains them before.
 */
export interface InferRequest extends Lent {
  readonly context: RequestContext
  /** Bytes are viewed. An optional input that is absent is not here. */
  readonly inputs: readonly NamedTensor[]
  /** Names of the outputs wanted; empty means all. */
  readonly requestedOutputs: readonly string[]
}

/** A request that was checked against its model's configuration, as a scheduler and an engine get it. */
export interface StepRequest extends InferRequest {
  /** Items in the batch dimension; 0 for a model without one. */
  readonly batchSize: number
}

/** Where the time of one execution went, in nanoseconds. `transferNs` is the transport's, the rest the step's. */
export interface StepTimes {
  readonly queueNs: number
  readonly computeInputNs: number
  readonly computeInferNs: number
  readonly computeOutputNs: number
  readonly transferNs: number
}

/** The times of a request that executed nothing. */
export const NO_TIMES: StepTimes = {
  queueNs: 0,
  computeInputNs: 0,
  computeInferNs: 0,
  computeOutputNs: 0,
  transferNs: 0,
}

/**
 * One response of an execution. An execution is a sequence of these: `index` counts from 0, the last one is `final`. Its bytes
 * are lent until `send` returns: a sink that reads them later retains them.
 */
export interface StepResponse extends Lent {
  readonly index: number
  readonly final: boolean
  /** Bytes are viewed. Empty for an empty final response. */
  readonly outputs: readonly NamedTensor[]
  readonly parameters: Parameters
  /** On the final response of a model version. */
  readonly times?: StepTimes
}

/** Whether a request that failed may have been executed: 'no' allows another attempt. */
export type Executed = 'no' | 'maybe'

/**
 * Takes what an execution brings: responses, the last of them final, or one failure. After the final response or the failure
 * everything is dropped, and nothing more comes from an executor that keeps this contract. No method throws.
 */
export interface ResponseSink {
  /** Takes a response; never waits. What is sent although the sink was not ready is taken too, up to bounds of its own. */
  send(response: StepResponse): void
  /** @param times - as far as they are known. */
  fail(error: ServeError, executed: Executed, times?: StepTimes): void
  /**
   * The one way of backpressure. An execution with many responses asks between two of them.
   *
   * @returns undefined if a further response may come now, at once and without a promise; else a promise that resolves when
   * it may, or when the execution has ended and what comes is dropped. It never rejects. A sink without this method is always
   * ready.
   */
  ready?(): Promise<void> | undefined
}

/** W3C trace context as it travels. */
export interface TraceContext {
  readonly traceparent: string
  readonly tracestate?: string
}

/** Which request an execution belongs to. */
export interface RequestOrigin {
  /** Unique per admitted request; what models call on its behalf has the same. For logs, and to find duplicates. */
  readonly requestKey: string
  /** The step of the ensemble; '' for a request to the model itself. */
  readonly step: string
  /** Counts from 1. */
  readonly attempt: number
  /** The models that called one another up to this request, the outermost first; absent for a client's own. */
  readonly callers?: readonly string[]
  /** True if a model that calls a router takes any number of responses; absent if it takes exactly one. */
  readonly isDecoupled?: true
}

/** Reasons by which a model version says that it refused a request before it executed anything. */
const REFUSALS: ReadonlySet<Reason> = new Set<Reason>([
  'REVISION_GONE',
  'MODEL_NOT_READY',
  'SERVER_STOPPING',
])

/** Whether a model version that answers with this error may have executed the request. */
export function executedBefore(error: ServeError): Executed {
  return REFUSALS.has(error.reason) ? 'no' : 'maybe'
}

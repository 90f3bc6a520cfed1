import type { Reason, ServeError } from '@tutti/errors'
import type { StepCount } from './step-counts.ts'
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
 * Bytes that their owner lends. They are valid for a time that the lender's type states, and longer for a reader that retains
 * them. Memory that is used again (shared memory, caches) is lent. Ordinary memory is not; the garbage collector frees it.
 */
export interface Lent {
  /**
   * Keeps the bytes valid beyond the time for which they were lent. Absent for ordinary memory. An own property, so that wrappers
   * which copy the object keep it.
   *
   * @returns a function that gives the bytes back. The caller of `retain` calls it once, after its last read.
   */
  readonly retain?: () => () => void
}

/**
 * One request to a model, from a client, a step of an ensemble or another model. Its bytes are lent until the executor has sent
 * the final response or the failure. An executor that reads longer (an execution that was abandoned) retains them before that.
 */
export interface InferRequest extends Lent {
  readonly context: RequestContext
  /** Input tensors, whose bytes are viewed. An optional input that is absent has no entry. */
  readonly inputs: readonly NamedTensor[]
  /** Names of the outputs wanted; empty means all. */
  readonly requestedOutputs: readonly string[]
  /** Text of what executes in place of the model's own code: a built-in step, or a part of a graph. Absent for the model itself. */
  readonly program?: string
}

/** A request that was checked against its model's configuration, as a scheduler and an engine get it. */
export interface StepRequest extends InferRequest {
  /** Items in the batch dimension; 0 for a model without one. */
  readonly batchSize: number
}

/** Times of one execution, in nanoseconds. `transferNs` is measured by the transport, the others by the step. */
export interface StepTimes {
  readonly queueNs: number
  readonly computeInputNs: number
  readonly computeInferNs: number
  readonly computeOutputNs: number
  readonly transferNs: number
  /** Report on the steps within, where a part of a graph was executed. */
  readonly part?: PartReport
}

/** Report on one step of a part: its caller sees the answer of the part alone. */
export interface StepReport {
  readonly step: string
  /** Name of what the step runs. */
  readonly model: string
  /** Calls that were answered, or failed after they executed. Of very many the first ones. */
  readonly calls: readonly {
    readonly queueNs: number
    readonly computeNs: number
    /** From the call to its answer. */
    readonly elapsedNs: number
    readonly isAnswer: boolean
  }[]
  /** Calls beyond these. */
  readonly more: number
  /** Calls that failed, but for those that were cancelled. */
  readonly failures: number
  /** Counts of the things done around the calls. */
  readonly counts: Readonly<Partial<Record<StepCount, number>>>
}

/** Report on a part of a graph, which ran as one request. */
export interface PartReport {
  /** Outputs that its answer lacks although no step was skipped for them. */
  readonly withheld: readonly string[]
  readonly steps: readonly StepReport[]
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
 * One response of an execution. An execution sends one or more: `index` counts from 0, and the last one is `final`. The bytes are
 * lent until `send` returns: a sink that reads them later retains them.
 */
export interface StepResponse extends Lent {
  readonly index: number
  readonly final: boolean
  /** Output tensors, whose bytes are viewed. Empty for an empty final response. */
  readonly outputs: readonly NamedTensor[]
  readonly parameters: Parameters
  /** Times of the execution, on the final response of a model version. */
  readonly times?: StepTimes
}

/** Whether a request that failed may have been executed: 'no' allows another attempt. */
export type Executed = 'no' | 'maybe'

/**
 * Takes the responses of an execution, which ends with a final response or one failure. The sink drops everything after that, and
 * an executor that keeps this contract sends nothing more. No method throws.
 */
export interface ResponseSink {
  /**
   * Takes a response; never waits. A response that is sent while the sink is not ready is taken too, up to the sink's own bounds.
   */
  send(response: StepResponse): void
  /** Ends the execution with an error. @param times - as far as they are known. */
  fail(error: ServeError, executed: Executed, times?: StepTimes): void
  /**
   * Tells whether the sink can take a further response. This is the only backpressure. An execution with many responses asks
   * between two of them.
   *
   * @returns undefined if a further response may come now; else a promise that resolves when it may, or when the execution has
   * ended and further responses are dropped. The promise never rejects. A sink without this method is always ready.
   */
  ready?(): Promise<void> | undefined
}

/** W3C trace context as it travels. */
export interface TraceContext {
  readonly traceparent: string
  readonly tracestate?: string
}

/** Request to which an execution belongs. */
export interface RequestOrigin {
  /**
   * Key that is unique per admitted request, for logs and to find duplicates. Requests that models make on its behalf have the
   * same key.
   */
  readonly requestKey: string
  /** Name of the ensemble's step; '' for a request to the model itself. */
  readonly step: string
  /** Number of the attempt, from 1. */
  readonly attempt: number
  /** The models that called one another up to this request, the outermost first; absent for a client's own. */
  readonly callers?: readonly string[]
  /** True if a model that calls a router takes any number of responses; absent if it takes exactly one. */
  readonly isDecoupled?: true
}

/*
 * Two lists decide whether a request that failed may have been executed. An error that a model version answered with has been
 * where requests are executed, so it says "no" only by a reason of NOTHING_EXECUTED. An error that ended a call for which no
 * answer came (it could not be sent, was refused on its way, was lost) says "no" unless its reason is one of MAYBE_EXECUTED.
 */

/** Reasons by which a model version says that it refused a request before it executed anything. */
const NOTHING_EXECUTED: ReadonlySet<Reason> = new Set<Reason>([
  'REVISION_GONE',
  'MODEL_NOT_READY',
  'SERVER_STOPPING',
])

/** Reasons by which a call ends without an answer after it may have reached its model: given up, lost with all its inputs, or a fault of ours. */
const MAYBE_EXECUTED: ReadonlySet<Reason> = new Set<Reason>([
  'CANCELLED',
  'DEADLINE_EXCEEDED',
  'STEP_LOST',
  'INTERNAL',
  'RESPONSE_INVALID',
])

/** Tells whether a model version that answers with this error may have executed the request. */
export function executedBefore(error: ServeError): Executed {
  return NOTHING_EXECUTED.has(error.reason) ? 'no' : 'maybe'
}

/** Tells whether a request may have been executed whose call ended with this error, without an answer of its model version. */
export function executedUnanswered(error: ServeError): Executed {
  return MAYBE_EXECUTED.has(error.reason) ? 'maybe' : 'no'
}

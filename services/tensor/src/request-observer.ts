import type { ServeError } from '@tutti/errors'
import type { Executed, InferRequest, StepResponse, StepTimes, TraceContext } from './execution.ts'

import type { StepCount } from './step-counts.ts'

/** A model version whose request is observed. */
export interface ObservedModel {
  readonly name: string
  readonly version: number
  readonly isEnsemble: boolean
  /** The step of an ensemble that it is; absent for a request of a client, and for a model that another one calls. */
  readonly step?: string
  /** Names of the steps of its ensemble that it waits for. */
  readonly waitsFor?: readonly string[]
  /** True for the fallback of the step. */
  readonly isFallback?: boolean
  /** Items or iteration of a step around it within which it runs, e.g. `[12]`, or `[12][3]`; absent for none. */
  readonly within?: string
}

/** How a request of a client came in. */
export interface ObservedClient {
  readonly protocol: 'http' | 'grpc'
  /** True if the request came from outside, over an edge listener. */
  readonly isOutside: boolean
  /** Time of the arrival by the clock of the process, in milliseconds. */
  readonly arrivedAt: number
}

/** The call that an observed request came with. */
export interface ObservedCall {
  readonly trace?: TraceContext
  /** Absent for all but requests of clients. */
  readonly client?: ObservedClient
}

/** How a request ended. */
export interface RequestEnd {
  /** Time since `began`, in nanoseconds. */
  readonly elapsedNs: number
  /** Items in the batch dimension; 0 for a model without one, and for a request that is observed from outside. */
  readonly batchSize: number
  /** Absent where nothing was executed, or the executor did not say. */
  readonly times?: StepTimes | undefined
  /** Absent if the request got its final response. */
  readonly error?: ServeError
  /** Whether the request was executed; only with an error. */
  readonly executed?: Executed
  /** The engine failed, or answered with what its model's configuration does not have. Only a model version says so. */
  readonly isOfEngine?: boolean
}

/**
 * Takes the events of one request, as they happen: it waits for its execution (`queued`, `dequeued`), and responses go to its caller
 * (`responded`). Every request ends in this order: `ended`, `responded` with the last response unless it failed, `answered`. The last
 * response may go later than the end, if it has to wait for those of other requests. A request that executes several times in one step
 * waits and ends as often, and is answered once.
 *
 * No method throws, waits, or keeps bytes of tensors: they are lent until it returns. A watch that throws is told nothing more.
 *
 * Who observes from outside, a request of a client, a step or a call of a model, learns of all of them, of those refused too, but not
 * when they wait. A model version or an ensemble publishes what it admits, as its statistics count: not what its checks refuse or its
 * cache answers, nor what an ensemble has no place for.
 */
export interface RequestWatch {
  /** Observes the steps of the request, if it is one to an ensemble, and what its model calls; absent if nothing does. Read where a request
   * is observed from outside. */
  readonly steps?: RequestObserver | undefined
  queued?(): void
  /** Called when the request no longer waits: it executes, or was refused. */
  dequeued?(): void
  /** A response goes to the caller. */
  responded?(response: StepResponse): void
  ended?(end: RequestEnd): void
  /**
   * So much more was done around this execution of a step; before it ends.
   *
   * @param reason - of the first error, for items that failed.
   */
  counted?(what: StepCount, count: number, reason?: string): void
  /** The caller has been given its final response or the error. */
  answered?(): void
}

/** Takes note of requests; one that nobody observes pays nothing. */
export interface RequestObserver {
  /**
   * A request begins: its model is known, and nothing of it was executed.
   *
   * @returns takes what follows; undefined if this request is of no interest.
   */
  began(model: ObservedModel, request: InferRequest, call: ObservedCall): RequestWatch | undefined
  /**
   * A step has its end without an execution: it was skipped, or its default stands in for an execution that failed.
   *
   * @param why - condition that did not hold, or what was absent; '' for a default.
   */
  passed?(model: ObservedModel, how: 'skipped' | 'defaulted', why: string): void
}

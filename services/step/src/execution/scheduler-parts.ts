import type { ExecutionTimes, LoadedModel } from '@tutti/backends'
import type { ServeError } from '@tutti/errors'
import type {
  ExecuteOptions,
  InferRequest,
  ModelTarget,
  ResponseSink,
  StepRequest,
} from '@tutti/tensor'
import type { ExecutionContext } from './execution-context.ts'

/** A request's place while it waits. */
export interface Waiting<T> {
  readonly item: T
}

/** The requests of one model version that wait: the ordinary queue, or that of sequences. */
export interface WaitingRequests<T> {
  readonly length: number
  /** Time of the next call of `expire` by the clock; no request expires before. */
  readonly nextExpiry: number
  /** @throws ServeError if the request is refused. */
  add(item: T, request: StepRequest, now: number): Waiting<T>
  /** False if the entry has left already. */
  remove(entry: Waiting<T>): boolean
  /** @returns what waits no longer, and why. */
  expire(now: number): readonly (readonly [T, ServeError])[]
  /** @returns the requests to execute on the instance that `pick` gave, or when to ask again. */
  next(now: number): readonly T[] | number
  /** Empties the queue. @returns what was in it. */
  clear(): readonly T[]
}

/** The instances of one model version. */
export interface InstanceChoice {
  /** Instances that execute nothing. */
  readonly idle: number
  /** An instance that may take an execution now, or -1. */
  pick(now: number): number
  begin(instance: number): void
  /** @param times - of the execution, if it went well. */
  end(instance: number, times: ExecutionTimes | undefined): void
}

/** The check and the schedulers that a request to a model version needs. */
export interface Checked<T extends { readonly execute: unknown }> {
  /** Checks a request against the config and computes what the engine gets; throws ServeError. */
  readonly check: (request: InferRequest) => StepRequest
  readonly scheduler: T
  /** Before the scheduler, where responses are cached. */
  readonly cached?: (Pick<T, 'execute'> & { settled(): Promise<unknown> }) | undefined
}

/** Executes requests for built-ins, in place of the model that they name. */
export interface BuiltinExecutor {
  /** @param text - of the built-in. */
  execute(
    target: ModelTarget,
    text: string,
    call: {
      readonly request: InferRequest
      readonly sink: ResponseSink
      readonly o: ExecuteOptions
    },
  ): void
}

/** Executes requests for parts of graphs over the models of the process. */
export interface PartExecutor {
  /** @param text - of the part. */
  execute(text: string, request: InferRequest, sink: ResponseSink, o: ExecuteOptions): void
  /** Takes no new requests, and resolves when all that it has are answered. */
  drain(): Promise<void>
}

/** A table that knows the model versions of the process. */
export interface VersionTable<T> {
  /** Finds what serves a pinned version. @throws ServeError if nothing does. */
  findPinned(target: ModelTarget): T
}

/** The parts from which a scheduler is put together. */
export interface SchedulerDependencies<T> {
  readonly model: LoadedModel
  readonly context: ExecutionContext
  readonly queue: WaitingRequests<T>
  readonly instances: InstanceChoice
}

/** Owner that schedules requests and executions. */
export interface ExecutionOwner<Request, Execution> {
  readonly context: ExecutionContext
  /** Answers the request with an error, whether it waits or runs. */
  abandon(request: Request, error: ServeError): void
  /** A request that has executed is to execute again. */
  again(request: Request): void
  /** A request has had its final response, or its failure. */
  settled(): void
  /** The instance may take a further execution. @param times - of the execution, if it is over and did not fail. */
  released(instance: number, times: ExecutionTimes | undefined): void
  /** All requests of the execution are answered, or wait for another one. */
  ended(execution: Execution): void
}

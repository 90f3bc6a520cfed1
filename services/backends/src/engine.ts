import type { CancelSignal } from '@tutti/errors'
import type { ModelConfig, ModelSignature, ModelVersionSource } from '@tutti/model-config'
import type { Lent, NamedTensor, Parameters, ResponseSink, StepRequest } from '@tutti/tensor'

export interface EngineOptions {
  /** Number of instances that execute at the same time, at least 1. */
  readonly instances: number
  /** Services that models may ask of the server that they run in; absent where the server offers nothing. */
  readonly host?: ModelHost
  /** Whether instances on one device are threads of one process; only for an engine that offers it. */
  readonly sharesInterpreter?: boolean
  /**
   * Aborts when the model is no longer wanted or its time is over, as the reason says. An engine that can then ends the load with
   * an error.
   */
  readonly signal?: AbortSignal
  /** Called with what the load waits for now, in a few words, e.g. `initialize of m_0`. */
  readonly report?: (doing: string) => void
  /** Milliseconds that an instance which has ended may take to start again. Absent: no limit. */
  readonly restartMs?: number
}

/** A request that a model makes to another model, or to an ensemble, while it executes (Triton's BLS). */
export interface HostRequest extends Lent {
  readonly modelName: string
  /** Version as the model wrote it; '' or '-1' is the latest ready one. */
  readonly modelVersion: string
  readonly requestId: string
  /** 0n or '' means none. */
  readonly correlationId: bigint | string
  /** Triton's bits: 1 is sequence start, 2 is sequence end. */
  readonly flags: number
  /** Queue timeout in microseconds, not a deadline; 0n means none. */
  readonly timeoutUs: bigint
  /** 0n is the model's default level. */
  readonly priority: bigint
  readonly parameters: Parameters
  /** Viewed until the sink has the final response or the failure, and longer by a reader that retains them. */
  readonly inputs: readonly NamedTensor[]
  /** Empty means all. */
  readonly requestedOutputs: readonly string[]
}

/** The caller and the bounds of a call that belongs to no request. */
export interface BackgroundCall {
  /** The calling model. */
  readonly model: string
  /** Milliseconds that the call may take; 0 for no limit. */
  readonly timeoutMs: number
}

/** The options of a model's call to another. */
export interface HostCallOptions {
  /** Cancels the call; it is cancelled too when `caller` is answered before, and when its time is over. */
  readonly signal: CancelSignal
  /**
   * The request on whose behalf the model calls: the very object that `execute` was given. Its remaining time, trace and
   * nesting depth hold for the call. Absent for a background call.
   */
  readonly caller?: StepRequest
  /** A call of a thread or task of the model that works for no request. */
  readonly background?: BackgroundCall
  /**
   * Requests that are executed together with `caller`, any of which the call may be for: it is cancelled only when all of them
   * are answered, and has the time of the one that has most.
   */
  readonly batch?: readonly StepRequest[]
  /** The request whose trace the model gave to the call; absent if it gave none. */
  readonly traced?: StepRequest | undefined
  /** Whether any number of responses may come; if not, the call of a decoupled model is refused. */
  readonly isDecoupled: boolean
}

/** Services that models may ask of the server that they run in. The step implements them; an engine never sees where a call goes. */
export interface ModelHost {
  /**
   * Executes a request. The caller's instance stays taken meanwhile. Its responses are owned by the sink: they stay valid as
   * long as it keeps them. It fails with STEP_UNAVAILABLE if no router is there, with MODEL_NOT_FOUND and the like as for a
   * client, with OVERLOADED or NESTING_TOO_DEEP. A sink that takes its time slows the called model down.
   */
  infer(request: HostRequest, sink: ResponseSink, o: HostCallOptions): void
  /**
   * Tells whether a model, or an ensemble, can be called now. '' or '-1' is any version. False for one that does not exist.
   * @throws ServeError INVALID_VERSION; STEP_UNAVAILABLE if no router answers.
   */
  isReady(model: string, version: string, o: { readonly signal: CancelSignal }): Promise<boolean>
  /**
   * Loads a model, or loads it anew. Resolves when it is ready.
   * @throws ServeError, among others MODEL_CONTROL_REFUSED where the server's models are not for clients to change.
   */
  load(
    model: string,
    o: {
      /** Configuration in Triton's JSON that replaces config.pbtxt; '' for none. */
      readonly config: string
      /** Files that replace those on disk, by path below the model's directory (`1/model.onnx`). */
      readonly files: ReadonlyMap<string, Uint8Array>
      readonly signal: CancelSignal
    },
  ): Promise<void>
  /** Unloads a model. @throws ServeError as `load`. */
  unload(
    model: string,
    o: { readonly unloadDependents: boolean; readonly signal: CancelSignal },
  ): Promise<void>
}

/** The statements of an engine about CUDA. */
export interface EngineCuda {
  /** Tells why the engine cannot use CUDA here, whatever devices there are; undefined if it can, or if only a load can tell. */
  problem(): string | undefined
  /** Whether a model of KIND_MODEL says itself where it executes. */
  readonly modelChooses: boolean
}

/** Makes loaded models from files. One implementation per backend. */
export interface Engine {
  /** Triton's backend name: `onnxruntime`, `python`, `pytorch`. */
  readonly backend: string
  /**
   * Statements about CUDA of an engine that executes on the CPU and on CUDA's devices alone; absent where models' own code uses
   * what there is.
   */
  readonly cuda?: EngineCuda
  /** Whether its instances can share a process. */
  readonly sharesInterpreters?: boolean
  /**
   * Reads the signature without loading, for auto-completion. `batchable` is true if every tensor's first dimension is free.
   * @throws ServeError MODEL_LOAD_FAILED if the file is absent or not a model.
   */
  inspect(modelFile: string): Promise<ModelSignature & { readonly batchable: boolean }>
  /**
   * Lets a model complete its own configuration, which stands as far as it is known without it. Where an engine has this,
   * `inspect` is not asked.
   *
   * @throws ServeError MODEL_LOAD_FAILED with the text of the model's exception.
   */
  complete?(
    source: Omit<ModelVersionSource, 'revision'>,
    options?: Pick<EngineOptions, 'signal'>,
  ): Promise<ModelConfig>
  /**
   * Finds what a load would refuse before code of the model runs. Absent where a load reads nothing that others do not read too.
   *
   * @throws ServeError as `load`.
   */
  check?(source: Omit<ModelVersionSource, 'revision'>): void
  /** Loads a version and starts its instances. @throws ServeError with Triton's text if the model cannot serve `source.config`. */
  load(source: ModelVersionSource, options: EngineOptions): Promise<LoadedModel>
}

/** Nanoseconds of one execution: for copying inputs in, for the run itself, and for copying outputs back. */
export interface ExecutionTimes {
  /** Nanoseconds that it waited before, behind other executions of its instance: queue time. Absent where instances take one at a time. */
  readonly waitNs?: number
  readonly computeInputNs: number
  readonly computeInferNs: number
  readonly computeOutputNs: number
}

/** One request of a batch, and where its responses go. */
export interface EngineRequest {
  readonly request: StepRequest
  readonly sink: ResponseSink
  /**
   * Puts the request back, as `next`, because the model wants it again: it waits for another execution, and has no further
   * response here. To be called before the instance takes further calls. Absent for a place that no request has.
   */
  again?(next: StepRequest): void
}

/** The options of one execution, and what it learns while it runs. */
export interface BatchOptions {
  /** Index of the instance, below `instances`. At most `openExecutions` calls for one instance are open, apart from released ones. */
  readonly instance: number
  /** Aborts when no caller waits for any of the requests. A running call need not stop for it; they are answered already. */
  readonly signal: CancelSignal
  /** Calls the listener for each request whose caller leaves before the final response, with its place in the batch. */
  onAbandon?(listener: (request: number) => void): void
  /**
   * Frees the instance for further calls, although this one still streams or its responses are not passed on yet. To be called
   * once at most.
   *
   * @param times - of the execution, if it is over: then the final response of each request was sent, or its `again` was called.
   */
  release?(times?: ExecutionTimes): void
}

/** A model in memory. */
export interface LoadedModel {
  /**
   * Number of executions that one instance takes at a time, at least 1, which is the default. It works on them one after the
   * other, in the order of the calls: more than one only saves the way to the instance, which pays for short models.
   */
  readonly openExecutions?: number
  /**
   * Executes requests together: engines that batch concatenate along dimension 0 and split the outputs again.
   * Resolves when every request had its final response or its failure, and does not reject for a request's error.
   * A model that streams waits for `sink.ready?.()` between the responses of a request. One that does not, and is 1024
   * responses or 256 MiB of outputs ahead of a reader, ends with OVERLOADED. A model with one response need not ask.
   *
   * @param batch - checked against the config; the tensors are viewed, not copied, until this resolves.
   */
  execute(batch: readonly EngineRequest[], o: BatchOptions): Promise<ExecutionTimes>
  /**
   * Ends the process of an instance, so that another takes its place: what the old one had on a device is gone. Absent where
   * instances execute in the process of the server.
   *
   * @param problem - why, for the log and for the requests that execute there.
   * @returns resolves when the old process has ended; executions wait for the new one.
   */
  replace?(instance: number, problem: string): Promise<void>
  /** Asks the model itself whether it is ready; absent if it has no word on that. Takes seconds at most, never rejects. */
  readonly isReady?: (() => Promise<boolean>) | undefined
  close(): Promise<void>
}

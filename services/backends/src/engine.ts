import type { ModelSignature, ModelVersionSource } from '@tutti/model-config'
import type { ResponseSink, StepRequest } from '@tutti/tensor'

export interface EngineOptions {
  /** Number of instances that execute at the same time, at least 1. */
  readonly instances: number
}

/** Makes loaded models from files. One implementation per backend. */
export interface Engine {
  /** Triton's backend name: `onnxruntime`, `python`, `pytorch`. */
  readonly backend: string
  /**
   * Reads the signature without loading, for auto-completion. `batchable` is true if every tensor's first dimension is free.
   * @throws ServeError MODEL_LOAD_FAILED if the file is absent or not a model.
   */
  inspect(modelFile: string): Promise<ModelSignature & { readonly batchable: boolean }>
  /** @throws ServeError with Triton's text if the model cannot serve `source.config`. */
  load(source: ModelVersionSource, options: EngineOptions): Promise<LoadedModel>
}

/** What one execution took, in nanoseconds: copying inputs in, the run itself, copying outputs back. */
export interface ExecutionTimes {
  /** What it waited before that behind other executions of its instance; absent where there are none. Queue time. */
  readonly waitNs?: number
  readonly computeInputNs: number
  readonly computeInferNs: number
  readonly computeOutputNs: number
}

/** A model in memory. */
export interface LoadedModel {
  readonly signature: ModelSignature
  /**
   * How many executions one instance takes at a time, at least 1, which is the default. It works on them one after the
   * other, in the order of the calls: more than one only saves the way to the instance, which pays for short models.
   */
  readonly openExecutions?: number
  /**
   * Executes requests together: engines that batch concatenate along dimension 0 and split the outputs again.
   * Responses go to `sink`; resolves when every request had its final response, and does not reject for a request's error.
   *
   * @param requests - checked against the config; their tensors are viewed, not copied, until this resolves.
   * @param o.instance - index below `instances`; at most `openExecutions` calls for one instance are open.
   * @param o.signal - a running call need not stop for it; the caller has answered already.
   */
  execute(
    requests: readonly StepRequest[],
    sink: ResponseSink,
    o: { readonly instance: number; readonly signal: AbortSignal },
  ): Promise<ExecutionTimes>
  close(): Promise<void>
}

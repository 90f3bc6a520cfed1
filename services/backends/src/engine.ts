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
  readonly computeInputNs: number
  readonly computeInferNs: number
  readonly computeOutputNs: number
}

/** A model in memory. The step never has more than `instances` executions open at once, one per instance index. */
export interface LoadedModel {
  readonly signature: ModelSignature
  /**
   * Executes requests together: engines that batch concatenate along dimension 0 and split the outputs again.
   * Responses go to `sink`; resolves when every request had its final response, and does not reject for a request's error.
   *
   * @param requests - checked against the config; their tensors are viewed, not copied, until this resolves.
   * @param o.instance - index below `instances`; two calls for one instance never overlap.
   * @param o.signal - a running call need not stop for it; the caller has answered already.
   */
  execute(
    requests: readonly StepRequest[],
    sink: ResponseSink,
    o: { readonly instance: number; readonly signal: AbortSignal },
  ): Promise<ExecutionTimes>
  close(): Promise<void>
}

import type { Engine, EngineOptions, ExecutionTimes, LoadedModel } from '@tutti/backends'
import { ServeError } from '@tutti/errors'
import type { ModelSignature, ModelVersionSource } from '@tutti/model-config'
import type { NamedTensor, ResponseSink, StepRequest, StepResponse } from '@tutti/tensor'

/** What every scripted execution reports to have taken. */
export const SCRIPTED_TIMES: ExecutionTimes = {
  computeInputNs: 10,
  computeInferNs: 100,
  computeOutputNs: 20,
}

/** One call of `execute`, held until the test lets it go. */
export interface ScriptedExecution {
  readonly requests: readonly StepRequest[]
  readonly instance: number
  readonly signal: AbortSignal
  /** Sends any response, as the engine would. */
  send(request: number, response: Partial<StepResponse>): void
  /** Answers every request that has no final response with its own inputs, renamed `y`, and ends. */
  finish(times?: ExecutionTimes): void
  /** Ends without sending anything more. */
  end(): void
  /** Rejects, as an engine that breaks. */
  fail(error: Error): void
}

/** A model whose executions a test sees and steers. */
export class ScriptedModel implements LoadedModel {
  readonly signature: ModelSignature
  /** Executions that an instance may have open; more are a fault. */
  readonly openExecutions: number
  /** Executions that began, in order. */
  readonly executions: ScriptedExecution[] = []
  /** False holds executions until the test finishes them. */
  isImmediate = false
  isClosed = false
  /** Instances that execute now, and how many executions. */
  readonly busy = new Map<number, number>()
  #waiting: { readonly count: number; readonly wake: () => void }[] = []

  constructor(signature: ModelSignature = { inputs: [], outputs: [] }, openExecutions: number = 1) {
    this.signature = signature
    this.openExecutions = openExecutions
  }

  execute(
    requests: readonly StepRequest[],
    sink: ResponseSink,
    o: { readonly instance: number; readonly signal: AbortSignal },
  ): Promise<ExecutionTimes> {
    const before = this.busy.get(o.instance) ?? 0
    if (before >= this.openExecutions) throw new Error(`instance ${o.instance} is busy`)
    this.busy.set(o.instance, before + 1)
    return new Promise<ExecutionTimes>((resolve, reject) => {
      const finals = new Set<number>()
      const send = (request: number, response: Partial<StepResponse>): void => {
        const whole = { index: 0, final: true, outputs: [], parameters: new Map(), ...response }
        if (whole.final) finals.add(request)
        sink.send(request, whole)
      }
      const end = (times: ExecutionTimes = SCRIPTED_TIMES): void => {
        this.#leave(o.instance)
        resolve(times)
      }
      const finish = (times?: ExecutionTimes): void => {
        requests.forEach((request, i) => {
          if (!finals.has(i)) send(i, { outputs: request.inputs.map(renamed) })
        })
        end(times)
      }
      const fail = (error: Error): void => {
        this.#leave(o.instance)
        reject(error)
      }
      const { instance, signal } = o
      this.executions.push({ requests, instance, signal, send, finish, end: () => end(), fail })
      this.#waiting = this.#waiting.filter(({ count, wake }) => {
        if (this.executions.length < count) return true
        wake()
        return false
      })
      if (this.isImmediate) finish()
    })
  }

  #leave(instance: number): void {
    const left = (this.busy.get(instance) ?? 1) - 1
    if (left === 0) this.busy.delete(instance)
    else this.busy.set(instance, left)
  }

  /** Resolves when `count` executions have begun since the model was loaded. */
  begun(count: number): Promise<void> {
    if (this.executions.length >= count) return Promise.resolve()
    return new Promise((wake) => this.#waiting.push({ count, wake }))
  }

  /** The execution with this position, which must have begun. */
  at(index: number): ScriptedExecution {
    const execution = this.executions.at(index)
    if (execution === undefined) throw new Error(`execution ${index} has not begun`)
    return execution
  }

  close(): Promise<void> {
    this.isClosed = true
    return Promise.resolve()
  }
}

/** An engine that reads no files: it serves whatever a test puts into `models`, by name, or fails as told. */
export class ScriptedEngine implements Engine {
  readonly backend: string
  /** Loaded models by `name/version`. */
  readonly loaded = new Map<string, ScriptedModel>()
  readonly options = new Map<string, EngineOptions>()
  readonly sources = new Map<string, ModelVersionSource>()
  /** By `name/version`: what `load` throws. */
  readonly failures = new Map<string, ServeError>()
  /** Models finish executions by themselves, for tests that do not steer them. */
  isImmediate = false
  /** What `load` prepares on each model before it is returned. */
  onLoad: (model: ScriptedModel) => void = () => {}
  /** Loads that run at the same time, at most, so far. */
  mostParallelLoads = 0
  #loading = 0

  constructor(backend = 'scripted') {
    this.backend = backend
  }

  inspect(modelFile: string): Promise<ModelSignature & { readonly batchable: boolean }> {
    return Promise.reject(new ServeError('MODEL_LOAD_FAILED', `no model in ${modelFile}`))
  }

  async load(source: ModelVersionSource, options: EngineOptions): Promise<LoadedModel> {
    this.#loading += 1
    this.mostParallelLoads = Math.max(this.mostParallelLoads, this.#loading)
    await new Promise(setImmediate)
    this.#loading -= 1
    const key = `${source.name}/${source.version}`
    const failure = this.failures.get(key)
    if (failure !== undefined) throw failure
    const model = new ScriptedModel()
    model.isImmediate = this.isImmediate
    this.onLoad(model)
    this.loaded.set(key, model)
    this.options.set(key, options)
    this.sources.set(key, source)
    return model
  }

  /** The model that was loaded as `name/version`. */
  model(key: string): ScriptedModel {
    const model = this.loaded.get(key)
    if (model === undefined) throw new Error(`${key} is not loaded`)
    return model
  }
}

function renamed(tensor: NamedTensor): NamedTensor {
  return { ...tensor, name: 'y' }
}

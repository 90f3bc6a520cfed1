import type {
  BatchOptions,
  Engine,
  EngineOptions,
  EngineRequest,
  ExecutionTimes,
  LoadedModel,
} from '@tutti/backends'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { ModelSignature, ModelVersionSource } from '@tutti/model-config'
import type { NamedTensor, StepRequest, StepResponse } from '@tutti/tensor'

/** The times that every scripted execution reports. */
export const SCRIPTED_TIMES: ExecutionTimes = {
  computeInputNs: 10,
  computeInferNs: 100,
  computeOutputNs: 20,
}

/** A response, or the error that stands for it. */
export type ScriptedResponse = Partial<StepResponse> & { readonly error?: ServeError }

/** One call of `execute`, held until the test lets it go. */
export interface ScriptedExecution {
  readonly requests: readonly StepRequest[]
  readonly instance: number
  readonly signal: CancelSignal
  /** Sends any response, or a failure, as the engine would. */
  send(request: number, response: ScriptedResponse): void
  /** Whether the request may have a further response, as an engine that streams asks. */
  ready(request: number): Promise<void> | undefined
  /** Wants the request again. */
  again(request: number): void
  /** Gives the instance back before the end. */
  release(times?: ExecutionTimes): void
  /** Requests whose callers have left, in that order. */
  readonly abandoned: readonly number[]
  /** Answers every request that has no final response with its own inputs, renamed `y`, and ends. */
  finish(times?: ExecutionTimes): void
  /** Ends without sending anything more. */
  end(): void
  /** Rejects, as an engine that breaks. */
  fail(error: Error): void
}

/** A model whose executions a test sees and steers. */
export class ScriptedModel implements LoadedModel {
  /** Executions that an instance may have open; more are a fault. */
  readonly openExecutions: number
  /** Executions that began, in order. */
  readonly executions: ScriptedExecution[] = []
  /** False holds executions until the test finishes them. */
  isImmediate = false
  /** Gives the instance back once all is sent, before the execution resolves, as an engine whose instances are processes. */
  releasesFirst = false
  isClosed = false
  /** The model's own word on whether it is ready. */
  isReady: (() => Promise<boolean>) | undefined
  /** Instances that execute now, and how many executions. */
  readonly busy = new Map<number, number>()
  #waiting: { readonly count: number; readonly wake: () => void }[] = []

  constructor(openExecutions = 1) {
    this.openExecutions = openExecutions
  }

  execute(batch: readonly EngineRequest[], o: BatchOptions): Promise<ExecutionTimes> {
    const before = this.busy.get(o.instance) ?? 0
    if (before >= this.openExecutions) throw new Error(`instance ${o.instance} is busy`)
    this.busy.set(o.instance, before + 1)
    return new Promise<ExecutionTimes>((resolve, reject) => {
      const finals = new Set<number>()
      const send = (place: number, { error, ...response }: ScriptedResponse): void => {
        const whole = { index: 0, final: true, outputs: [], parameters: new Map(), ...response }
        if (whole.final) finals.add(place)
        if (error === undefined) batch[place]?.sink.send(whole)
        else batch[place]?.sink.fail(error, 'maybe')
      }
      const again = (place: number): void => {
        finals.add(place)
        const entry = batch[place]
        entry?.again?.(entry.request)
      }
      let hasLeft = false
      const leave = (): void => {
        if (!hasLeft) this.#leave(o.instance)
        hasLeft = true
      }
      const release = (times?: ExecutionTimes): void => {
        leave()
        o.release?.(times)
      }
      const end = (times: ExecutionTimes = SCRIPTED_TIMES): void => {
        leave()
        resolve(times)
      }
      const finish = (times?: ExecutionTimes): void => {
        batch.forEach(({ request }, i) => {
          if (!finals.has(i)) send(i, { outputs: request.inputs.map(renamed) })
        })
        if (this.releasesFirst) release(times ?? SCRIPTED_TIMES)
        end(times)
      }
      const fail = (error: Error): void => {
        leave()
        reject(error)
      }
      const { instance, signal } = o
      const ready = (place: number): Promise<void> | undefined => batch[place]?.sink.ready?.()
      const requests = batch.map(({ request }) => request)
      const abandoned: number[] = []
      o.onAbandon?.((request) => abandoned.push(request))
      const steer = { send, ready, again, release, abandoned, finish, end: () => end(), fail }
      this.executions.push({ requests, instance, signal, ...steer })
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

/** Streams `count` responses to a request as a decoupled model does that heeds its reader; the last is final. */
export async function streamResponses(
  execution: ScriptedExecution,
  o: {
    readonly request?: number
    readonly count: number
    readonly outputs?: (index: number) => readonly NamedTensor[]
    /** Called with the number of responses sent so far. */
    readonly onSent?: (sent: number) => void
  },
): Promise<void> {
  const { request = 0, count, outputs } = o
  for (let index = 0; index < count; index += 1) {
    const final = index + 1 === count
    execution.send(request, { index, final, outputs: outputs?.(index) ?? [] })
    o.onSent?.(index + 1)
    await execution.ready(request)
  }
}

/** An engine that reads no files: it serves whatever a test puts into `models`, by name, or fails as told. */
export class ScriptedEngine implements Engine {
  readonly backend: string
  sharesInterpreters = false
  /** Loaded models by `name/version`. */
  readonly loaded = new Map<string, ScriptedModel>()
  readonly options = new Map<string, EngineOptions>()
  readonly sources = new Map<string, ModelVersionSource>()
  /** By `name/version`: what `load` throws. */
  readonly failures = new Map<string, ServeError>()
  /** Models finish executions by themselves, for tests that do not steer them. */
  isImmediate = false
  /** The preparation that `load` makes on each model before it is returned. */
  onLoad: (model: ScriptedModel) => void = () => {}
  /** Holds loads back until it resolves; by `name/version`. */
  beforeLoad: (key: string, source: ModelVersionSource, o: EngineOptions) => Promise<void> =
    async () => {}
  /** Loads that run at the same time, at most, so far. */
  mostParallelLoads = 0
  #loading = 0

  constructor(backend = 'scripted') {
    this.backend = backend
  }

  /** The signature that models tell, by their files: none does unless a test has it so. */
  inspect = (modelFile: string): Promise<ModelSignature & { readonly batchable: boolean }> =>
    Promise.reject(new ServeError('MODEL_LOAD_FAILED', `no model in ${modelFile}`))

  async load(source: ModelVersionSource, options: EngineOptions): Promise<LoadedModel> {
    this.#loading += 1
    this.mostParallelLoads = Math.max(this.mostParallelLoads, this.#loading)
    const key = `${source.name}/${source.version}`
    await new Promise(setImmediate)
    await this.beforeLoad(key, source, options).finally(() => (this.#loading -= 1))
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

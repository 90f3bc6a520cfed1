import type { Clock } from '@tutti/chassis'
import type { InferRequest, NamedTensor, ObservedModel, StepTimes } from '@tutti/tensor'
import type { TraceLevel } from './trace-settings.ts'
import { tracedTensor } from './traced-tensor.ts'

/** Characters of the events of a request, and as many for those of all its steps together: what comes later is left out. */
const MAX_CHARACTERS = 4 * 1024 * 1024

/** The characters that the traces that share it may still take: a stream without end must not fill the memory. */
export class TraceBudget {
  #left = MAX_CHARACTERS

  get isSpent(): boolean {
    return this.#left < 0
  }

  /** @returns false if the text is to be left out. */
  take({ length }: string): boolean {
    this.#left -= length
    return !this.isSpent
  }
}

export interface ModelTraceOptions {
  readonly id: number
  /** The trace of the ensemble that called the model; absent for a client's request. */
  readonly parentId?: number
  readonly model: ObservedModel
  readonly request: InferRequest
  readonly levels: readonly TraceLevel[]
  readonly clock: Clock
  readonly budget: TraceBudget
}

/** The events of one request to one model, as JSON texts in tritonserver's form and order. */
export class ModelTrace {
  readonly events: string[] = []
  /** Time of the start by the clock, in milliseconds. */
  readonly startedAt: number
  readonly #options: ModelTraceOptions

  constructor(o: ModelTraceOptions) {
    this.#options = o
    this.startedAt = o.clock.now()
  }

  get id(): number {
    return this.#options.id
  }

  begin(): void {
    const { id, parentId, model, request } = this.#options
    if (this.#has('TIMESTAMPS')) {
      const { id: requestId } = request.context
      const named = requestId !== '' && { request_id: requestId }
      const child = parentId !== undefined && { parent_id: parentId }
      this.#push({ id, model_name: model.name, model_version: model.version, ...named, ...child })
    }
    this.time('REQUEST_START', this.startedAt)
    this.time('QUEUE_START', this.startedAt)
    this.#tensors('TENSOR_QUEUE_INPUT', request.inputs)
  }

  responded(outputs: readonly NamedTensor[]): void {
    this.#tensors('TENSOR_BACKEND_OUTPUT', outputs)
  }

  /** Ensembles compute nothing themselves. @param times - absent where nothing was executed. */
  end(times: StepTimes | undefined, atMs: number): void {
    if (times !== undefined && !this.#options.model.isEnsemble) this.#computed(times)
    this.time('REQUEST_END', atMs)
  }

  time(name: string, atMs: number): void {
    if (!this.#has('TIMESTAMPS')) return
    this.#push({ id: this.#options.id, timestamps: [{ name, ns: Math.round(atMs * 1e6) }] })
  }

  #computed(times: StepTimes): void {
    let at = this.startedAt
    const after = (ns: number): number => (at += ns / 1e6)
    this.time('COMPUTE_START', after(times.queueNs))
    this.time('COMPUTE_INPUT_END', after(times.computeInputNs))
    this.time('COMPUTE_OUTPUT_START', after(times.computeInferNs))
    this.time('COMPUTE_END', after(times.computeOutputNs))
  }

  #tensors(activity: string, tensors: readonly NamedTensor[]): void {
    if (!this.#has('TENSORS')) return
    for (const tensor of tensors) {
      if (this.#options.budget.isSpent) return
      this.#push({ id: this.#options.id, activity, tensor: tracedTensor(tensor) })
    }
  }

  #has(level: TraceLevel): boolean {
    return this.#options.levels.includes(level)
  }

  #push(event: object): void {
    const text = JSON.stringify(event)
    if (this.#options.budget.take(text)) this.events.push(text)
  }
}

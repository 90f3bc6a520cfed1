import type { Clock } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'
import { isEnsembleConfig } from '@tutti/model-config'
import type {
  Executed,
  InferRequest,
  NamedTensor,
  ResponseSink,
  StepResponse,
  StepTimes,
} from '@tutti/tensor'
import type { Protocol, ResolvedModel, SelectorDecorator } from '../inference-backend.ts'
import { decorateModels } from '../request/decorate.ts'
import type { TraceFile } from './trace-file.ts'
import type { TraceLevel, TraceSettings } from './trace-settings.ts'
import { tracedTensor } from './traced-tensor.ts'

export interface TraceRequestsOptions {
  readonly settings: TraceSettings
  readonly file: Pick<TraceFile, 'write'>
  readonly clock: Clock
}

/** Traces requests of clients into a file, in tritonserver's form. What models and ensembles call has no traces of its own. */
export function traceRequests({ settings, file, clock }: TraceRequestsOptions): SelectorDecorator {
  let last = 0
  return (protocol, select) => (caller) => {
    const receivedAt = clock.now()
    return decorateModels(select(caller), (model) => (request, sink, o) => {
      const levels = settings.sample(model.name)
      if (levels === undefined) return model.execute(request, sink, o)
      last += 1
      const trace = new RequestTrace({ id: last, protocol, model, request, levels, clock })
      const write = (events: readonly string[]): void =>
        file.write(events, settings.valuesOf(model.name).logFrequency)
      trace.begin(receivedAt)
      model.execute(request, new TracedSink(trace, sink, write), o)
    })
  }
}

/** What each protocol calls the arrival of a request and the end of its answer. */
const NAMES: Readonly<Record<Protocol, readonly [arrival: string, answer: string]>> = {
  http: ['HTTP_RECV', 'HTTP_SEND'],
  grpc: ['GRPC_WAITREAD', 'GRPC_SEND'],
}

interface RequestTraceOptions {
  readonly id: number
  readonly protocol: Protocol
  readonly model: ResolvedModel
  readonly request: InferRequest
  readonly levels: readonly TraceLevel[]
  readonly clock: Clock
}

/** The events of one request, as JSON texts in their order. */
class RequestTrace {
  readonly events: string[] = []
  readonly #o: RequestTraceOptions
  #startedAt = 0
  #characters = 0

  constructor(o: RequestTraceOptions) {
    this.#o = o
  }

  now(): number {
    return this.#o.clock.now()
  }

  begin(receivedAt: number): void {
    const { id, model, request, protocol, clock } = this.#o
    const { name, version } = model
    this.#startedAt = clock.now()
    this.#times(NAMES[protocol][0], receivedAt, this.#startedAt)
    if (this.#has('TIMESTAMPS')) {
      const { id: requestId } = request.context
      const isNamed = requestId !== '' && { request_id: requestId }
      this.#push({ id, model_name: name, model_version: version, ...isNamed })
    }
    this.#time('REQUEST_START', this.#startedAt)
    this.#time('QUEUE_START', this.#startedAt)
    this.#tensors('TENSOR_QUEUE_INPUT', request.inputs)
  }

  responded({ outputs }: StepResponse): void {
    this.#time('INFER_RESPONSE_COMPLETE', this.#o.clock.now())
    this.#tensors('TENSOR_BACKEND_OUTPUT', outputs)
  }

  /** Ensembles compute nothing themselves. @param times - absent for a failure. */
  end(times: StepTimes | undefined, sentFrom: number): void {
    const { model, protocol, clock } = this.#o
    if (times !== undefined && !isEnsembleConfig(model.config)) this.#computed(times)
    this.#time('REQUEST_END', sentFrom)
    this.#times(NAMES[protocol][1], sentFrom, clock.now())
  }

  #computed(times: StepTimes): void {
    let at = this.#startedAt
    const after = (ns: number): number => (at += ns / 1e6)
    this.#time('COMPUTE_START', after(times.queueNs))
    this.#time('COMPUTE_INPUT_END', after(times.computeInputNs))
    this.#time('COMPUTE_OUTPUT_START', after(times.computeInferNs))
    this.#time('COMPUTE_END', after(times.computeOutputNs))
  }

  #times(what: string, fromMs: number, toMs: number): void {
    this.#time(`${what}_START`, fromMs)
    this.#time(`${what}_END`, toMs)
  }

  #time(name: string, atMs: number): void {
    if (!this.#has('TIMESTAMPS')) return
    this.#push({ id: this.#o.id, timestamps: [{ name, ns: Math.round(atMs * 1e6) }] })
  }

  #tensors(activity: string, tensors: readonly NamedTensor[]): void {
    if (!this.#has('TENSORS')) return
    for (const tensor of tensors) {
      this.#push({ id: this.#o.id, activity, tensor: tracedTensor(tensor) })
    }
  }

  #has(level: TraceLevel): boolean {
    return this.#o.levels.includes(level)
  }

  #push(event: object): void {
    const text = JSON.stringify(event)
    this.#characters += text.length
    // A stream without end must not fill the memory.
    if (this.#characters <= MAX_CHARACTERS) this.events.push(text)
  }
}

/** Of the events of one request; what comes later is left out. */
const MAX_CHARACTERS = 4 * 1024 * 1024

/** Passes everything on, and notes it. */
class TracedSink implements ResponseSink {
  readonly #trace: RequestTrace
  readonly #sink: ResponseSink
  readonly #write: (events: readonly string[]) => void

  constructor(trace: RequestTrace, sink: ResponseSink, write: (events: readonly string[]) => void) {
    this.#trace = trace
    this.#sink = sink
    this.#write = write
  }

  send(response: StepResponse): void {
    this.#trace.responded(response)
    if (!response.final) return this.#sink.send(response)
    this.#endAfter(response.times, () => this.#sink.send(response))
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    this.#endAfter(undefined, () => this.#sink.fail(error, executed, times))
  }

  ready(): Promise<void> | undefined {
    return this.#sink.ready?.()
  }

  #endAfter(times: StepTimes | undefined, answer: () => void): void {
    const sentFrom = this.#trace.now()
    answer()
    this.#trace.end(times, sentFrom)
    this.#write(this.#trace.events)
  }
}

import type { Clock } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'
import { isEnsembleConfig } from '@tutti/model-config'
import {
  ChildTraces,
  joinTraces,
  ModelTrace,
  TraceBudget,
  type TraceFile,
  type TraceSettings,
} from '@tutti/telemetry'
import type { Executed, ResponseSink, StepResponse, StepTimes } from '@tutti/tensor'
import { DecoratedBackend } from '../backend/decorated-backend.ts'
import type { Protocol, SelectorDecorator } from '../backend/inference-backend.ts'

export interface TraceRequestsOptions {
  readonly settings: TraceSettings
  readonly file: Pick<TraceFile, 'write'>
  readonly clock: Clock
}

/**
 * Traces requests of clients into a file, in tritonserver's form, and with them the steps of ensembles, and what models call if
 * they give their trace to the call. Rate, count and level are those of the model that the client asks for.
 */
export function traceRequests({ settings, file, clock }: TraceRequestsOptions): SelectorDecorator {
  let last = 0
  const nextId = (): number => (last += 1)
  return (protocol, select) => (caller) => {
    const receivedAt = clock.now()
    return new DecoratedBackend(select(caller), (model) => (request, sink, o) => {
      const levels = settings.sample(model.name)
      if (levels === undefined) return model.execute(request, sink, o)
      const { name, version, config } = model
      const traced = { name, version, isEnsemble: isEnsembleConfig(config) }
      const budget = new TraceBudget()
      const trace = new ModelTrace({ id: nextId(), model: traced, request, levels, clock, budget })
      const children = new ChildTraces({ nextId, levels, clock })
      const write = (): void => {
        const events = [...children.events, ...trace.events]
        file.write(events, settings.valuesOf(name).logFrequency)
      }
      const [arrival] = NAMES[protocol]
      trace.time(`${arrival}_START`, receivedAt)
      trace.time(`${arrival}_END`, trace.startedAt)
      trace.begin()
      const to = new TracedSink({ trace, protocol, clock, sink, write })
      const stepTraces = joinTraces(o.stepTraces, children.under(trace.id))
      model.execute(request, to, { ...o, stepTraces })
    })
  }
}

/** Names that each protocol has for the arrival of a request and the end of its answer. */
const NAMES: Readonly<Record<Protocol, readonly [arrival: string, answer: string]>> = {
  http: ['HTTP_RECV', 'HTTP_SEND'],
  grpc: ['GRPC_WAITREAD', 'GRPC_SEND'],
}

interface TracedSinkOptions {
  readonly trace: ModelTrace
  readonly protocol: Protocol
  readonly clock: Clock
  readonly sink: ResponseSink
  readonly write: () => void
}

/** Passes everything on, and notes it. */
class TracedSink implements ResponseSink {
  readonly #o: TracedSinkOptions

  constructor(o: TracedSinkOptions) {
    this.#o = o
  }

  send(response: StepResponse): void {
    const { trace, clock, sink } = this.#o
    trace.responded(response.outputs)
    trace.time('INFER_RESPONSE_COMPLETE', clock.now())
    if (!response.final) return sink.send(response)
    this.#endAfter(response.times, () => sink.send(response))
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    const { trace, clock } = this.#o
    if (executed === 'maybe') trace.time('INFER_RESPONSE_COMPLETE', clock.now())
    this.#endAfter(times, () => this.#o.sink.fail(error, executed, times))
  }

  ready(): Promise<void> | undefined {
    return this.#o.sink.ready?.()
  }

  #endAfter(times: StepTimes | undefined, answer: () => void): void {
    const { trace, protocol, clock, write } = this.#o
    const [, name] = NAMES[protocol]
    const sentFrom = clock.now()
    answer()
    trace.end(times, sentFrom)
    trace.time(`${name}_START`, sentFrom)
    trace.time(`${name}_END`, clock.now())
    write()
  }
}

import type { Clock } from '@tutti/chassis'
import type { RequestObserver, StepTimes } from '@tutti/tensor'
import { ChildTraces } from './child-traces.ts'
import { ModelTrace, TraceBudget } from './model-trace.ts'
import type { TraceFile } from './trace-file.ts'
import type { TraceSettings } from './trace-settings.ts'

export interface RequestTracesOptions {
  readonly settings: TraceSettings
  readonly file: Pick<TraceFile, 'write'>
  readonly clock: Clock
}

/** Names that each protocol has for the arrival of a request and the end of its answer. */
const NAMES = {
  http: ['HTTP_RECV', 'HTTP_SEND'],
  grpc: ['GRPC_WAITREAD', 'GRPC_SEND'],
} as const

/**
 * Traces requests of clients into a file, in tritonserver's form, and with them the steps of ensembles, and what models call if
 * they give their trace to the call. Rate, count and level are those of the model that the client asks for. Clients outside are not
 * traced.
 */
export function traceRequests({ settings, file, clock }: RequestTracesOptions): RequestObserver {
  let last = 0
  const nextId = (): number => (last += 1)
  return {
    began: (model, request, { client }) => {
      if (client === undefined || client.isOutside) return undefined
      const levels = settings.sample(model.name)
      if (levels === undefined) return undefined
      const budget = new TraceBudget()
      const trace = new ModelTrace({ id: nextId(), model, request, levels, clock, budget })
      const children = new ChildTraces({ nextId, levels, clock })
      const [arrival, answer] = NAMES[client.protocol]
      trace.time(`${arrival}_START`, client.arrivedAt)
      trace.time(`${arrival}_END`, trace.startedAt)
      trace.begin()
      let times: StepTimes | undefined
      let sentFrom = 0
      return {
        steps: children.under(trace.id),
        responded: ({ outputs }) => {
          trace.responded(outputs)
          sentFrom = clock.now()
          trace.time('INFER_RESPONSE_COMPLETE', sentFrom)
        },
        ended: (end) => {
          if (end.executed === 'maybe') trace.time('INFER_RESPONSE_COMPLETE', clock.now())
          times = end.times
          sentFrom = clock.now()
        },
        answered: () => {
          trace.end(times, sentFrom)
          trace.time(`${answer}_START`, sentFrom)
          trace.time(`${answer}_END`, clock.now())
          const events = [...children.events, ...trace.events]
          file.write(events, settings.valuesOf(model.name).logFrequency)
        },
      }
    },
  }
}

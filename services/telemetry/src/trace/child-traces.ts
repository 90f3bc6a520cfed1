import type { ResponseSink, StepTraces } from '@tutti/tensor'
import { ModelTrace, type ModelTraceOptions, TraceBudget } from './model-trace.ts'

export interface ChildTracesOptions extends Pick<ModelTraceOptions, 'levels' | 'clock'> {
  readonly nextId: () => number
}

/** The traces of the steps of one traced request, and of their steps. */
export class ChildTraces {
  readonly #o: ChildTracesOptions
  readonly #budget = new TraceBudget()
  readonly #traces: ModelTrace[] = []

  constructor(o: ChildTracesOptions) {
    this.#o = o
  }

  /** The events of all child traces so far, the newest first, as tritonserver writes them. */
  get events(): readonly string[] {
    return this.#traces.toReversed().flatMap(({ events }) => events)
  }

  /** @param parentId - the trace of the ensemble whose steps they are. */
  under(parentId: number): StepTraces {
    return {
      begin: (model, request, sink) => {
        if (this.#budget.isSpent) return [sink, this.under(parentId)]
        const { nextId, levels, clock } = this.#o
        const budget = this.#budget
        const trace = new ModelTrace({
          id: nextId(),
          parentId,
          model,
          request,
          levels,
          clock,
          budget,
        })
        this.#traces.push(trace)
        trace.begin()
        return [this.#watch(trace, sink), this.under(trace.id)]
      },
    }
  }

  /** Ends the trace before the response goes on: the request may end, and be written, with it. */
  #watch(trace: ModelTrace, sink: ResponseSink): ResponseSink {
    const { clock } = this.#o
    return {
      send: (response) => {
        trace.responded(response.outputs)
        if (response.final) trace.end(response.times, clock.now())
        sink.send(response)
      },
      fail: (error, executed, times) => {
        trace.end(times, clock.now())
        sink.fail(error, executed, times)
      },
      ready: () => sink.ready?.(),
    }
  }
}

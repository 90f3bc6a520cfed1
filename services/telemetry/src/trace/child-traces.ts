import type { RequestObserver } from '@tutti/tensor'
import { ModelTrace, type ModelTraceOptions, TraceBudget } from './model-trace.ts'

export interface ChildTracesOptions extends Pick<ModelTraceOptions, 'levels' | 'clock'> {
  readonly nextId: () => number
}

/** The traces of the steps of one traced request, and of their steps. */
export class ChildTraces {
  readonly #options: ChildTracesOptions
  readonly #budget = new TraceBudget()
  readonly #traces: ModelTrace[] = []

  constructor(o: ChildTracesOptions) {
    this.#options = o
  }

  /** The events of all child traces so far, the newest first, as tritonserver writes them. */
  get events(): readonly string[] {
    return this.#traces.toReversed().flatMap(({ events }) => events)
  }

  /** @param parentId - the trace of the ensemble whose steps they are. */
  under(parentId: number): RequestObserver {
    return {
      began: (model, request) => {
        if (this.#budget.isSpent) return { steps: this.under(parentId) }
        const { nextId, levels, clock } = this.#options
        const budget = this.#budget
        const id = nextId()
        const trace = new ModelTrace({ id, parentId, model, request, levels, clock, budget })
        this.#traces.push(trace)
        trace.begin()
        return {
          steps: this.under(id),
          responded: ({ outputs, final, times }) => {
            trace.responded(outputs)
            if (final) trace.end(times, clock.now())
          },
          ended: ({ error, times }) => {
            if (error !== undefined) trace.end(times, clock.now())
          },
        }
      },
    }
  }
}

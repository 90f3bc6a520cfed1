import type { Clock } from '@tutti/chassis'
import { plainName } from '@tutti/model-config'
import type { ObservedModel, RequestObserver, RequestWatch } from '@tutti/tensor'

/** Spans of one request. */
const MAX_SPANS = 500
/** Spans of all requests that are recorded at the same time: some megabytes. */
const MAX_OPEN_SPANS = 20_000

/** Times of one execution, in milliseconds. Time that is neither queue nor compute is transfer. */
export interface StepSpan {
  /** The step of the ensemble; '' for the request itself, and for what a model calls. */
  readonly step: string
  readonly model: string
  /** 0 for the request itself, 1 for its steps, and so on. */
  readonly depth: number
  /** Names of the steps of the same ensemble that it waits for. */
  readonly waitsFor: readonly string[]
  /** Both from the begin of the request. */
  readonly startMs: number
  readonly endMs: number
  readonly queueMs: number
  readonly computeMs: number
  /** The reason of the error that it ended with, in words of the catalogue; '' if it answered, or has not ended. */
  readonly reason: string
}

/** The steps of a request, as far as they are recorded. */
export interface RecordedSteps {
  /** Spans of executions, in the order in which they began. */
  readonly spans: readonly StepSpan[]
  /** Executions that are not among them, because there were too many. */
  readonly leftOut: number
}

/** The spans that all recorded requests may have together; they are given back when their request ends. */
export class SpanBudget {
  #left = MAX_OPEN_SPANS

  take(): boolean {
    if (this.#left === 0) return false
    this.#left -= 1
    return true
  }

  giveBack(spans: number): void {
    this.#left += spans
  }
}

/** The budget of all requests of this process, but for those that a page waits for. */
const ALL_REQUESTS = new SpanBudget()

type OpenSpan = { -readonly [K in keyof StepSpan]: StepSpan[K] } & { isOpen: boolean }
type Begun = Pick<StepSpan, 'step' | 'model' | 'depth' | 'waitsFor'>

/** Records what one request does, as its steps begin and end. */
export class StepSpans implements RequestObserver {
  readonly #spans: OpenSpan[] = []
  readonly #clock: Pick<Clock, 'now'>
  readonly #budget: SpanBudget
  readonly #startedAt: number
  #leftOut = 0
  #isOver = false

  constructor(clock: Pick<Clock, 'now'>, budget = ALL_REQUESTS) {
    this.#clock = clock
    this.#budget = budget
    this.#startedAt = clock.now()
  }

  /** Observes the request; once. */
  began({ name }: ObservedModel): RequestWatch {
    const span = this.#open({ step: '', model: plainName(name), depth: 0, waitsFor: [] })
    const watch = this.#watch(span, 1)
    return {
      ...watch,
      ended: (end) => {
        watch.ended?.(end)
        this.#isOver = true
        this.#budget.giveBack(this.#spans.length - 1)
      },
    }
  }

  /** Reads the spans so far. One that has not ended lasts until now. */
  read(): RecordedSteps {
    const nowMs = this.#elapsedMs()
    const spans = this.#spans.map(({ isOpen, ...span }) =>
      isOpen ? { ...span, endMs: nowMs } : span,
    )
    return { spans, leftOut: this.#leftOut }
  }

  #under(depth: number): RequestObserver {
    return {
      began: (model) => {
        const { name, step = '', waitsFor: before = [] } = model
        const unseen = { steps: this.#under(depth + 1) }
        // A request that has failed left this execution behind.
        if (this.#isOver) return unseen
        if (this.#spans.length === MAX_SPANS || !this.#budget.take()) {
          this.#leftOut += 1
          return unseen
        }
        const waitsFor = before.map(plainName)
        const span = this.#open({ step: plainName(step), model: plainName(name), depth, waitsFor })
        return this.#watch(span, depth + 1)
      },
    }
  }

  #open(begun: Begun): OpenSpan {
    const startMs = this.#elapsedMs()
    const span = { ...begun, startMs, endMs: startMs, queueMs: 0, computeMs: 0, reason: '' }
    const open = { ...span, isOpen: true }
    this.#spans.push(open)
    return open
  }

  /** @param depth - of what the execution calls. */
  #watch(span: OpenSpan, depth: number): RequestWatch {
    return {
      steps: this.#under(depth),
      ended: ({ error, times }) => {
        span.isOpen = false
        span.endMs = this.#elapsedMs()
        span.reason = error?.reason ?? ''
        if (times === undefined) return
        const { queueNs, computeInputNs, computeInferNs, computeOutputNs } = times
        span.queueMs = queueNs / 1e6
        span.computeMs = (computeInputNs + computeInferNs + computeOutputNs) / 1e6
      },
    }
  }

  #elapsedMs(): number {
    return this.#clock.now() - this.#startedAt
  }
}

/** Picks what one sees who may not know what models call inside: the graph of its own ensemble. */
export function withoutInner({ spans, leftOut }: RecordedSteps): RecordedSteps {
  return { spans: spans.filter(isOfGraph), leftOut }
}

function isOfGraph({ depth, step }: StepSpan): boolean {
  return depth === 0 || (depth === 1 && step !== '')
}

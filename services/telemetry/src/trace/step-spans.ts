import type { Clock } from '@tutti/chassis'
import { plainName } from '@tutti/model-config'
import type { ObservedModel, RequestObserver, RequestWatch, StepCount } from '@tutti/tensor'

/** Spans of one request. */
const MAX_SPANS = 500
/** Spans of all requests that are recorded at the same time: some megabytes. */
const MAX_OPEN_SPANS = 20_000
/** Characters of a condition that a span has. */
const MOST_WHY = 160

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
  /** The step has this end without an execution. */
  readonly passed?: 'skipped' | 'defaulted'
  /** Condition that did not hold, or what was absent; only of a step that was skipped. */
  readonly why?: string
  /** The fallback of the step. */
  readonly isFallback?: true
  /** Items or iteration of a step around it within which it ran, e.g. `[12]`. */
  readonly within?: string
  /** Reason of the first item that failed. */
  readonly itemReason?: string
  /** How often things were done around this execution; absent for nothing. */
  readonly counts?: Readonly<Partial<Record<StepCount, number>>>
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
type Begun = Pick<
  StepSpan,
  'step' | 'model' | 'depth' | 'waitsFor' | 'isFallback' | 'within' | 'passed' | 'why'
>

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
        const span = this.#take(toBegun(model, depth))
        return span === undefined ? { steps: this.#under(depth + 1) } : this.#watch(span, depth + 1)
      },
      passed: (model, how, why) => {
        const cut = why.length > MOST_WHY ? `${why.slice(0, MOST_WHY)}…` : why
        const passed = { passed: how, ...(why !== '' && { why: cut }) }
        const span = this.#take({ ...toBegun(model, depth), ...passed })
        if (span !== undefined) span.isOpen = false
      },
    }
  }

  /** Opens a span unless there are too many. */
  #take(begun: Begun): OpenSpan | undefined {
    // A request that has failed left this execution behind.
    if (this.#isOver) return undefined
    if (this.#spans.length < MAX_SPANS && this.#budget.take()) return this.#open(begun)
    this.#leftOut += 1
    return undefined
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
      counted: (what, count, reason) => {
        if (reason !== undefined) span.itemReason ??= reason
        span.counts = { ...span.counts, [what]: (span.counts?.[what] ?? 0) + count }
      },
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

function toBegun(model: ObservedModel, depth: number): Begun {
  const { name, step = '', waitsFor: before = [], isFallback, within } = model
  return {
    step: plainName(step),
    model: plainName(name),
    depth,
    waitsFor: before.map(plainName),
    ...(isFallback === true && { isFallback }),
    ...(within !== undefined && { within }),
  }
}

/** Picks what one sees who may not know what models call inside: the graph of its own ensemble. */
export function withoutInner({ spans, leftOut }: RecordedSteps): RecordedSteps {
  return { spans: spans.filter(isOfGraph), leftOut }
}

function isOfGraph({ depth, step }: StepSpan): boolean {
  return depth === 0 || (depth === 1 && step !== '')
}

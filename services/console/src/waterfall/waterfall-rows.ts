import type { RecordedSteps, StepSpan } from '../api/step-span.ts'
import { criticalPath } from './critical-path.ts'

/** One execution of a request, as a waterfall shows it. */
export interface WaterfallRow {
  /** `request`, the name of a step, or the model that was called. */
  readonly label: string
  readonly depth: number
  /** The request waited for it. */
  readonly isCritical: boolean
  readonly startMs: number
  /** Reason of the error that it ended with; '' for none. */
  readonly reason: string
  readonly times: StepTimes
  /** Shares of the time of all, from 0 to 1: where it begins, and how long its parts are. Which part came first is not known. */
  readonly bar: {
    readonly from: number
    readonly queue: number
    readonly compute: number
    readonly all: number
  }
}

/** In milliseconds. */
export interface StepTimes {
  readonly queueMs: number
  readonly computeMs: number
  /** The rest; NaN where steps that ran at the same time took more together. */
  readonly transferMs: number
  readonly allMs: number
}

/** Makes the rows that show the spans of a request: one each, in their order. */
export function waterfallRows({ spans, leftOut }: RecordedSteps): readonly WaterfallRow[] {
  // The path of only some of the steps would be another one.
  const path = new Set(leftOut === 0 ? criticalPath(spans) : [])
  const wholeMs = Math.max(...spans.map(({ endMs }) => endMs)) || 1
  return spans.map((span) => {
    const { step, model, depth, startMs, reason } = span
    const times = timesOf(span)
    const { queueMs, computeMs, allMs } = times
    // The times of an ensemble are those of its steps, which have rows of their own.
    const isWhole = depth === 0 && spans.length > 1
    const queue = isWhole ? 0 : Math.min(allMs, queueMs)
    const compute = isWhole ? 0 : Math.min(allMs - queue, computeMs)
    return {
      label: depth === 0 ? 'request' : step || model,
      depth,
      isCritical: path.has(span),
      startMs,
      reason,
      times,
      bar: {
        from: startMs / wholeMs,
        queue: queue / wholeMs,
        compute: compute / wholeMs,
        all: allMs / wholeMs,
      },
    }
  })
}

/** Where the time of a request went. */
export interface RequestTimes extends StepTimes {
  /** The steps that it waited for, the first one first; none of a model. */
  readonly path: readonly string[]
  /** Milliseconds of the server, before, between and after these steps; 0 of a model. */
  readonly betweenMs: number
}

/** @returns undefined without spans. */
export function requestTimes({ spans, leftOut }: RecordedSteps): RequestTimes | undefined {
  const [request] = spans
  if (request === undefined) return undefined
  const path = leftOut === 0 ? criticalPath(spans).toReversed() : []
  const whole = timesOf(request)
  if (path.length === 0) return { ...whole, path: [], betweenMs: 0 }
  const parts = path.map(timesOf)
  const sum = (of: (times: StepTimes) => number): number =>
    parts.reduce((total, times) => total + of(times), 0)
  return {
    path: path.map(({ step }) => step),
    queueMs: sum((times) => times.queueMs),
    computeMs: sum((times) => times.computeMs),
    transferMs: sum((times) => times.transferMs),
    allMs: whole.allMs,
    betweenMs: whole.allMs - sum((times) => times.allMs),
  }
}

function timesOf({ startMs, endMs, queueMs, computeMs }: StepSpan): StepTimes {
  const allMs = endMs - startMs
  const restMs = allMs - queueMs - computeMs
  return { queueMs, computeMs, transferMs: restMs < 0 ? Number.NaN : restMs, allMs }
}

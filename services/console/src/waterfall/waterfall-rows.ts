import type { RecordedSteps, StepSpan } from '../api/step-span.ts'
import { criticalPath } from './critical-path.ts'
import { describeSpan } from './describe-span.ts'

/** One execution of a request, as a waterfall shows it. */
export interface WaterfallRow {
  /** `request`, the name of a step, with the items or the iteration within which it ran, or the model that was called. */
  readonly label: string
  /** Short phrases that say what was done around the execution, or why there was none. */
  readonly notes: readonly string[]
  /** True for a step without an execution: it has no bar, and no times but its begin. */
  readonly isPassed: boolean
  readonly depth: number
  /** True if the step is on the critical path of the request. */
  readonly isCritical: boolean
  readonly startMs: number
  /** Reason of the error with which the execution ended; '' for none. */
  readonly reason: string
  readonly times: SpanTimes
  /** Begin and parts of the bar, as shares of the whole request's time, 0 to 1. The true order of the parts is not known. */
  readonly bar: {
    readonly from: number
    readonly queue: number
    readonly compute: number
    readonly all: number
  }
}

/** The times of one execution, in milliseconds. */
export interface SpanTimes {
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
    const { step, model, depth, startMs, reason, within = '', passed } = span
    const times = timesOf(span)
    const { queueMs, computeMs, allMs } = times
    // The times of an ensemble are those of its steps, which have rows of their own.
    const isWhole = depth === 0 && spans.length > 1
    const queue = isWhole ? 0 : Math.min(allMs, queueMs)
    const compute = isWhole ? 0 : Math.min(allMs - queue, computeMs)
    return {
      label: depth === 0 ? 'request' : `${step || model}${within}`,
      notes: describeSpan(span),
      isPassed: passed !== undefined,
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

/** The times of a request by kind of work, summed over its critical path. */
export interface RequestTimes extends SpanTimes {
  /** Names of the steps on the critical path, the first one first; none for a model. */
  readonly path: readonly string[]
  /** Milliseconds before, between and after the steps of the path; 0 for a model. */
  readonly betweenMs: number
}

/** Sums the times of a request over its critical path. @returns undefined without spans. */
export function requestTimes({ spans, leftOut }: RecordedSteps): RequestTimes | undefined {
  const [request] = spans
  if (request === undefined) return undefined
  const path = leftOut === 0 ? criticalPath(spans).toReversed() : []
  const whole = timesOf(request)
  if (path.length === 0) return { ...whole, path: [], betweenMs: 0 }
  const parts = path.map(timesOf)
  const sum = (of: (times: SpanTimes) => number): number =>
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

function timesOf({ startMs, endMs, queueMs, computeMs }: StepSpan): SpanTimes {
  const allMs = endMs - startMs
  const restMs = allMs - queueMs - computeMs
  return { queueMs, computeMs, transferMs: restMs < 0 ? Number.NaN : restMs, allMs }
}

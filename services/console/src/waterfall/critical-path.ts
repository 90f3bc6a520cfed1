import type { StepSpan } from '../api/step-span.ts'

/** Clocks of one process are read a moment apart. */
const TOLERANCE_MS = 0.001

/**
 * The steps that the request has waited for, the last one first: each waits for the one that is named next, and began after its
 * end. A request is as slow as these. None if one of them began before the steps that it waits for had ended, as the reader of a
 * stream does: which of both the request waited for is not known.
 */
export function criticalPath(spans: readonly StepSpan[]): readonly StepSpan[] {
  const own = spans.filter(({ depth }) => depth === 1)
  const path: StepSpan[] = []
  for (let span = latest(own); span !== undefined; ) {
    path.push(span)
    const { waitsFor, startMs } = span
    const before = own.filter((one) => waitsFor.includes(one.step) && !path.includes(one))
    const ended = before.filter(({ endMs }) => endMs <= startMs + TOLERANCE_MS)
    if (ended.length === 0 && before.length > 0) return []
    span = latest(ended)
  }
  return path
}

function latest(spans: readonly StepSpan[]): StepSpan | undefined {
  return spans.toSorted((a, b) => b.endMs - a.endMs)[0]
}

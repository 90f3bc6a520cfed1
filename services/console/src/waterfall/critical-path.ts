import type { StepSpan } from '../api/step-span.ts'

/** Clocks of one process are read a moment apart. */
const TOLERANCE_MS = 0.001

/**
 * The steps that the request has waited for, the last one first: each waits for the one that is named next, and began after its
 * end. A request is as slow as these.
 */
export function criticalPath(spans: readonly StepSpan[]): readonly StepSpan[] {
  const own = spans.filter(({ depth }) => depth === 1)
  const path: StepSpan[] = []
  for (let span = latest(own); span !== undefined; ) {
    path.push(span)
    const { waitsFor, startMs } = span
    span = latest(
      own.filter(
        (one) =>
          waitsFor.includes(one.step) && one.endMs <= startMs + TOLERANCE_MS && !path.includes(one),
      ),
    )
  }
  return path
}

function latest(spans: readonly StepSpan[]): StepSpan | undefined {
  return spans.toSorted((a, b) => b.endMs - a.endMs)[0]
}

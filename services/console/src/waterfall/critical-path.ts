import type { StepSpan } from '../api/step-span.ts'

/** Clocks of one process are read a moment apart. */
const TOLERANCE_MS = 0.001

/**
 * Finds the critical path of a request: the steps for which it waited, the last one first. Each step on the path began after the
 * next one in the list had ended. The list is empty if a step began before any of the steps for which it waits had ended, as a
 * reader of a stream does: the path is not known then. A step that was skipped is not on the path, but those before it are.
 */
export function criticalPath(spans: readonly StepSpan[]): readonly StepSpan[] {
  const own = spans.filter(({ depth }) => depth === 1)
  const seen: StepSpan[] = []
  for (let span = latest(own); span !== undefined; ) {
    seen.push(span)
    const { waitsFor, startMs } = span
    const before = own.filter((one) => waitsFor.includes(one.step) && !seen.includes(one))
    const ended = before.filter(({ endMs }) => endMs <= startMs + TOLERANCE_MS)
    if (ended.length === 0 && before.length > 0) return []
    span = latest(ended)
  }
  return seen.filter(({ passed }) => passed === undefined)
}

function latest(spans: readonly StepSpan[]): StepSpan | undefined {
  return spans.toSorted((a, b) => b.endMs - a.endMs)[0]
}

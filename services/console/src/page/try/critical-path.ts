import type { Step } from '../../api/model-detail.ts'
import type { StepSpan } from '../../api/step-span.ts'

/** Clocks of one process are read a moment apart. */
const TOLERANCE_MS = 0.001

/**
 * The steps that the request has waited for, the last one first: each began after the one that is named next had ended, and needs
 * a tensor of it. A request is as slow as these.
 */
export function criticalPath(
  spans: readonly StepSpan[],
  steps: readonly Step[],
): readonly StepSpan[] {
  const own = spans.filter(({ depth }) => depth === 1)
  const path: StepSpan[] = []
  for (let span = latest(own); span !== undefined; ) {
    path.push(span)
    const { step, startMs } = span
    const needed = producersOf(step, steps)
    span = latest(
      own.filter(
        (one) => needed.has(one.step) && one.endMs <= startMs + TOLERANCE_MS && !path.includes(one),
      ),
    )
  }
  return path
}

function latest(spans: readonly StepSpan[]): StepSpan | undefined {
  return spans.toSorted((a, b) => b.endMs - a.endMs)[0]
}

/** The names of the steps that make what a step reads. */
function producersOf(name: string, steps: readonly Step[]): ReadonlySet<string> {
  const read = new Set(
    steps
      .filter((step) => step.name === name)
      .flatMap(({ inputs }) => inputs.map(({ tensor }) => tensor)),
  )
  const makes = ({ outputs }: Step): boolean => outputs.some(({ tensor }) => read.has(tensor))
  return new Set(steps.filter(makes).map((step) => step.name))
}

import { useMemo } from 'preact/hooks'
import type { Step } from '../../api/model-detail.ts'
import type { RecordedSteps, StepSpan } from '../../api/step-span.ts'
import { formatMs } from '../rates.ts'
import { criticalPath } from './critical-path.ts'

interface WaterfallProps {
  readonly recorded: RecordedSteps
  /** Of the ensemble; none of a model. */
  readonly steps: readonly Step[]
}

/** When the steps of one request ran, and what each waited for. */
export function Waterfall({ recorded, steps }: WaterfallProps) {
  const { spans, leftOut } = recorded
  // Of some steps alone it would be another one.
  const path = useMemo(
    () => new Set(leftOut === 0 ? criticalPath(spans, steps) : []),
    [recorded, steps],
  )
  if (spans.length === 0) return null
  const endMs = Math.max(...spans.map((span) => span.endMs))
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Steps of this request">
      <table class="waterfall">
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col">Time</th>
            {['Begin', 'Queue', 'Compute', 'Transfer', 'All'].map((title) => (
              <th key={title} scope="col" class="number">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {spans.map((span, i) => (
            <Row key={i} span={span} endMs={endMs} isCritical={path.has(span)} />
          ))}
        </tbody>
      </table>
      {leftOut > 0 && (
        <p class="reason">
          {leftOut.toLocaleString('en')} further steps are not shown, because there are too many. So
          it is not known which were critical.
        </p>
      )}
    </div>
  )
}

function Row({
  span,
  endMs,
  isCritical,
}: {
  readonly span: StepSpan
  readonly endMs: number
  readonly isCritical: boolean
}) {
  const { step, model, depth, startMs, queueMs, computeMs, reason } = span
  const allMs = span.endMs - startMs
  // Of an ensemble, those of its steps, which may run at the same time.
  const isSum = queueMs + computeMs > allMs
  const transferMs = isSum ? Number.NaN : allMs - queueMs - computeMs
  return (
    <tr class={isCritical ? 'critical' : ''}>
      <th scope="row">
        {'\u00a0\u00a0'.repeat(depth)}
        {depth === 0 ? 'request' : step || model}
        {isCritical && <span class="quiet"> critical</span>}
        {reason !== '' && <span class="mono bad"> {reason}</span>}
      </th>
      <td class="bars">
        <Bar span={span} endMs={endMs} />
      </td>
      <td class="number">{formatMs(startMs)}</td>
      <td class="number">{formatMs(queueMs)}</td>
      <td class="number">{formatMs(computeMs)}</td>
      <td class="number">{formatMs(transferMs)}</td>
      <td class="number">{formatMs(allMs)}</td>
    </tr>
  )
}

/** The parts of a bar are shares of it: which came first is not known. */
function Bar({ span, endMs }: { readonly span: StepSpan; readonly endMs: number }) {
  const { startMs, depth } = span
  const scale = 100 / (endMs || 1)
  const width = (span.endMs - startMs) * scale
  const queue = depth === 0 ? 0 : Math.min(width, span.queueMs * scale)
  const compute = depth === 0 ? 0 : Math.min(width - queue, span.computeMs * scale)
  const at = startMs * scale
  return (
    <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      <rect class="whole" x={at} y="1" width={Math.max(width, 0.3)} height="8" />
      <rect class="queue" x={at} y="1" width={queue} height="8" />
      <rect class="compute" x={at + queue} y="1" width={compute} height="8" />
    </svg>
  )
}

import { useMemo } from 'preact/hooks'
import type { RecordedSteps } from '../../api/step-span.ts'
import { type WaterfallRow, waterfallRows } from '../../waterfall/waterfall-rows.ts'
import { NumberHeads } from '../parts.tsx'
import { formatMs } from '../rates.ts'

/** Shows when the steps of one request ran, and which of them were critical. */
export function Waterfall({ recorded }: { readonly recorded: RecordedSteps }) {
  const { leftOut } = recorded
  const rows = useMemo(() => waterfallRows(recorded), [recorded])
  if (rows.length === 0) return null
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Steps of this request">
      <table class="waterfall">
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col">Time</th>
            <NumberHeads titles={['Begin', 'Queue', 'Compute', 'Transfer', 'All']} />
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <Row key={i} row={row} />
          ))}
        </tbody>
      </table>
      <p class="legend quiet">
        <Colour kind="queue" /> queue <Colour kind="compute" /> compute <Colour kind="whole" />{' '}
        transfer and the rest
      </p>
      {leftOut > 0 && (
        <p class="reason">
          {leftOut.toLocaleString('en')} further steps are not shown, because there are too many. So
          it is not known which were critical.
        </p>
      )}
    </div>
  )
}

/** Times of a step that did not run. */
const NO_TIMES = {
  queueMs: undefined,
  computeMs: undefined,
  transferMs: undefined,
  allMs: undefined,
}

function Row({ row }: { readonly row: WaterfallRow }) {
  const { label, notes, isPassed, depth, isCritical, reason, startMs, times } = row
  const shown = isPassed ? NO_TIMES : times
  return (
    <tr class={isCritical ? 'critical' : ''}>
      <th scope="row">
        {'\u00a0\u00a0'.repeat(depth)}
        {label}
        {isCritical && <span class="quiet"> critical</span>}
        {reason !== '' && <span class="mono bad"> {reason}</span>}
        {notes.map((note) => (
          <span key={note} class="note">
            {'\u00a0\u00a0'.repeat(depth + 1)}
            {note}
          </span>
        ))}
      </th>
      <td class="bars">{!isPassed && <Bar bar={row.bar} />}</td>
      <td class="number">{formatMs(startMs)}</td>
      <td class="number">{formatMs(shown.queueMs)}</td>
      <td class="number">{formatMs(shown.computeMs)}</td>
      <td class="number">{formatMs(shown.transferMs)}</td>
      <td class="number">{formatMs(shown.allMs)}</td>
    </tr>
  )
}

/** A square of the colour that the text behind it names. */
function Colour({ kind }: { readonly kind: 'queue' | 'compute' | 'whole' }) {
  return (
    <svg viewBox="0 0 10 10" aria-hidden="true">
      <rect class={kind} width="10" height="10" />
    </svg>
  )
}

function Bar({ bar: { from, queue, compute, all } }: Pick<WaterfallRow, 'bar'>) {
  return (
    <svg viewBox="0 0 1 10" preserveAspectRatio="none" aria-hidden="true">
      <rect class="whole" x={from} y="1" width={Math.max(all, 0.003)} height="8" />
      <rect class="queue" x={from} y="1" width={queue} height="8" />
      <rect class="compute" x={from + queue} y="1" width={compute} height="8" />
    </svg>
  )
}

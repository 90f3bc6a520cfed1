import type { StepDetail } from '../api/model-detail.ts'
import { hasPage, linkTo } from './links.ts'
import { NumberHeads, State } from './parts.tsx'
import { formatMs, formatRate, type Rates } from './rates.ts'

interface StepsTableProps {
  readonly steps: readonly StepDetail[]
  readonly rates: readonly (Rates | undefined)[]
}

/** Shows what each step does now: the figures of the graph, and some more, as text. */
export function StepsTable({ steps, rates }: StepsTableProps) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Steps">
      <table class="steps">
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col">Model</th>
            <th scope="col">State</th>
            <NumberHeads titles={['Requests', 'Model errors', 'Queue', 'Transfer', 'Compute']} />
          </tr>
        </thead>
        <tbody>
          {steps.map((step, i) => {
            const now = rates[i]
            return (
              <tr key={i}>
                <th scope="row">
                  {step.name}
                  {step.call.length > 0 && <div class="note">{step.call.join(', ')}</div>}
                </th>
                <td>
                  {hasPage(step) ? <a href={linkTo(step.model)}>{step.model}</a> : step.model}
                </td>
                <td>
                  <State state={step.state === 'ready' ? 'READY' : step.state} />
                </td>
                <td class="number">{formatRate(now?.requestsPerSecond)}</td>
                <td class={(now?.failuresPerSecond ?? 0) > 0 ? 'number bad' : 'number'}>
                  {formatRate(now?.failuresPerSecond)}
                </td>
                <td class="number">{formatMs(now?.queueMs)}</td>
                <td class="number">{formatMs(now?.transferMs)}</td>
                <td class="number">{formatMs(now?.computeMs)}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

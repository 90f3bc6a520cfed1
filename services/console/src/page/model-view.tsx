import { useState } from 'preact/hooks'
import { ModelDetail } from '../api/model-detail.ts'
import { GraphView } from './graph-view.tsx'
import { linkTo } from './links.ts'
import { MissingFigures, Panel, Reasons, shapeOf, Trouble, Versions } from './parts.tsx'
import { countRates, formatMs, formatRate, type Rates, stepRates } from './rates.ts'
import type { Reading } from './replica-rows.ts'
import { ReplicasView } from './replicas-view.tsx'
import { RequestPanel } from './request/request-panel.tsx'
import { StepsTable } from './steps-table.tsx'
import { TryPanel } from './try/try-panel.tsx'
import { UnreadyView } from './unready-view.tsx'
import { usePoll } from './use-poll.ts'

/** To itself. */
const NO_LINKS: ReadonlySet<string> = new Set()

/** Shows one model or ensemble: its figures, its graph and its signature. */
export function ModelView({ name }: { readonly name: string }) {
  const path = `/console/api/models/${encodeURIComponent(name)}`
  const { data, before, failure } = usePoll(path, ModelDetail)
  return (
    <main id="content" tabIndex={-1} class={failure === undefined ? '' : 'stale'}>
      <nav aria-label="Path">
        <a href="#/">Models</a>
      </nav>
      <div class="title">
        <h1>{name}</h1>
        {data && <Versions versions={data.versions} />}
      </div>
      <Trouble failure={failure} hasData={data !== undefined} />
      {data && (
        <>
          <Reasons versions={data.versions} />
          <MissingFigures why={data.countsFailure} />
          <UnreadyView cluster={data.cluster} models={NO_LINKS} />
          <Body detail={data} before={before} />
        </>
      )}
    </main>
  )
}

function Body({
  detail,
  before,
}: {
  readonly detail: ModelDetail
  readonly before: ModelDetail | undefined
}) {
  const { graph, usedBy, counts } = detail
  const elapsedMs = detail.atMs - (before?.atMs ?? detail.atMs)
  const steps = graph?.steps ?? []
  const rates = steps.map((step, i) => stepRates(step, before?.graph?.steps[i], elapsedMs))
  return (
    <>
      <Figures detail={detail} rates={countRates(counts, before?.counts, elapsedMs)} />
      {graph && (
        <Panel title="Graph">
          <GraphView graph={graph} signature={detail} rates={rates} />
          <StepsTable steps={steps} rates={rates} />
        </Panel>
      )}
      <ReplicasPanel detail={detail} before={before} />
      <TryPanel detail={detail} />
      <RequestPanel detail={detail} />
      <Panel title="Signature">
        <Signature detail={detail} />
      </Panel>
      {usedBy.length > 0 && (
        <Panel title="Used by">
          <ul class="plain">
            {usedBy.map((other) => (
              <li key={other}>
                <a href={linkTo(other)}>{other}</a>
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </>
  )
}

function ReplicasPanel({
  detail,
  before,
}: {
  readonly detail: ModelDetail
  readonly before: ModelDetail | undefined
}) {
  const { name, kind, graph } = detail
  // Those of an ensemble's steps may be many, and its figures stand above.
  const [isOpen, setOpen] = useState(kind !== 'ensemble')
  const now = readingOf(detail)
  if (now === undefined) return null
  return (
    <Panel title="Replicas">
      {kind === 'ensemble' && (
        <button type="button" class="plain" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Hide' : 'Show'} the replicas of its steps
        </button>
      )}
      {isOpen && (
        <ReplicasView
          model={name}
          steps={graph?.steps}
          now={now}
          before={before && readingOf(before)}
          namespace={detail.cluster?.namespace}
        />
      )}
    </Panel>
  )
}

function readingOf({ atMs, replicas }: ModelDetail): Reading | undefined {
  return replicas && { atMs, replicas }
}

function Figures({
  detail,
  rates,
}: {
  readonly detail: ModelDetail
  readonly rates: Rates | undefined
}) {
  const { kind, platform, maxBatchSize, isDecoupled, counts } = detail
  const figures: readonly (readonly [string, string])[] = [
    ['kind', kind === 'model' && platform !== '' ? `model, ${platform}` : kind],
    ['largest batch', maxBatchSize > 0 ? String(maxBatchSize) : 'none'],
    ...(isDecoupled ? [['responses', 'any number (decoupled)'] as const] : []),
    ['requests', formatRate(rates?.requestsPerSecond)],
    ['errors', formatRate(rates?.failuresPerSecond)],
    ['latency', formatMs(rates?.requestMs)],
    ['queue', formatMs(rates?.queueMs)],
    ['compute', formatMs(rates?.computeMs)],
    [
      'since load',
      counts === undefined
        ? '–'
        : `${counts.requests.toLocaleString('en')} answered, ${counts.failures.toLocaleString('en')} failed`,
    ],
  ]
  return (
    <dl class="figures">
      {figures.map(([term, value]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

function Signature({ detail }: { readonly detail: ModelDetail }) {
  const rows = [
    ...detail.inputs.map((tensor) => ({ side: 'input', tensor })),
    ...detail.outputs.map((tensor) => ({ side: 'output', tensor })),
  ]
  if (rows.length === 0) return <p class="quiet">The signature is not known.</p>
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Side</th>
          <th scope="col">Type</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ side, tensor }) => (
          <tr key={`${side} ${tensor.name}`}>
            <th scope="row">{tensor.name}</th>
            <td>{tensor.isOptional ? `${side}, optional` : side}</td>
            <td class="mono">{shapeOf(tensor)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

import { useMemo, useState } from 'preact/hooks'
import { Overview, type OverviewModel } from '../api/overview.ts'
import { linkTo } from './links.ts'
import { MissingFigures, NumberHeads, Reasons, Trouble, Versions } from './parts.tsx'
import { countRates, formatMs, formatRate, type Rates } from './rates.ts'
import { UnreadyView } from './unready-view.tsx'
import { usePoll } from './use-poll.ts'

/** Lists all models and ensembles: states, versions, reasons why they are not ready, and current rates. */
export function ModelsView() {
  const { data, before, failure } = usePoll('/console/api/overview', Overview)
  const [filter, setFilter] = useState('')
  const shown = useMemo(() => select(data?.models ?? [], filter), [data, filter])
  const earlier = useMemo(
    () => new Map((before?.models ?? []).map((model) => [model.name, model.counts])),
    [before],
  )
  const names = useMemo(() => new Set(data?.models.map(({ name }) => name)), [data])
  const elapsedMs = (data?.atMs ?? 0) - (before?.atMs ?? 0)
  return (
    <main id="content" tabIndex={-1} class={failure === undefined ? '' : 'stale'}>
      <div class="title">
        <h1>Models</h1>
        {data && <Summary overview={data} />}
      </div>
      <Trouble failure={failure} hasData={data !== undefined} />
      {data && (
        <>
          <MissingFigures why={data.countsFailure} />
          <UnreadyView cluster={data.cluster} models={names} />
          <div class="tools">
            <input
              type="search"
              aria-label="Filter by name, state or reason"
              placeholder="Filter by name, state or reason"
              value={filter}
              onInput={(event) => setFilter(event.currentTarget.value)}
            />
            <span class="quiet" role="status">
              {shown.length} of {data.models.length}
            </span>
          </div>
          <Table models={shown} earlier={earlier} elapsedMs={elapsedMs} />
        </>
      )}
    </main>
  )
}

function Table(o: {
  readonly models: readonly OverviewModel[]
  readonly earlier: ReadonlyMap<string, OverviewModel['counts']>
  readonly elapsedMs: number
}) {
  const { models, earlier, elapsedMs } = o
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Models">
      <table class="models">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Kind</th>
            <th scope="col">Versions</th>
            <NumberHeads titles={['Requests', 'Errors', 'Latency']} />
          </tr>
        </thead>
        <tbody>
          {models.map((model) => (
            <Row
              key={model.name}
              model={model}
              rates={countRates(model.counts, earlier.get(model.name), elapsedMs)}
            />
          ))}
        </tbody>
      </table>
      {models.length === 0 && <p class="quiet">No model fits.</p>}
    </div>
  )
}

function Summary({ overview: { server, models } }: { readonly overview: Overview }) {
  const ready = models.filter(isReady).length
  return (
    <p class="quiet">
      {server.name} {server.version} · {server.scope}
      {server.host && ` on ${server.host}`} · {server.isReady ? 'server ready' : 'server not ready'}{' '}
      · {ready} of {models.length} ready
      <OtherRouters others={server.others ?? []} />
    </p>
  )
}

const MOST_ROUTERS = 8

/** This page shows one of them. */
function OtherRouters({ others }: { readonly others: NonNullable<Overview['server']['others']> }) {
  if (others.length === 0) return null
  const names = others
    .slice(0, MOST_ROUTERS)
    .map(({ name, host }) => (host ? `${name} on ${host}` : name))
  const more = others.length > names.length ? ' …' : ''
  const routers = others.length === 1 ? 'router serves' : 'routers serve'
  return ` · ${others.length} other ${routers} the same repository: ${names.join(', ')}${more}`
}

function Row({
  model,
  rates,
}: {
  readonly model: OverviewModel
  readonly rates: Rates | undefined
}) {
  const { name, kind, platform, versions } = model
  const failing = (rates?.failuresPerSecond ?? 0) > 0
  return (
    <tr>
      <th scope="row">
        <a href={linkTo(name)}>{name}</a>
        <Reasons versions={versions} />
      </th>
      <td>
        {kind === 'unknown' ? '–' : kind}
        {kind === 'model' && platform !== '' && <span class="quiet"> {platform}</span>}
      </td>
      <td>
        <Versions versions={versions} />
      </td>
      <td class="number">{formatRate(rates?.requestsPerSecond)}</td>
      <td class={failing ? 'number bad' : 'number'}>{formatRate(rates?.failuresPerSecond)}</td>
      <td class="number">{formatMs(rates?.requestMs)}</td>
    </tr>
  )
}

/** Ensembles first, as they are what most clients call; then by name. */
function select(models: readonly OverviewModel[], filter: string): readonly OverviewModel[] {
  const wanted = filter.trim().toLowerCase()
  return models
    .filter((model) => wanted === '' || textOf(model).includes(wanted))
    .toSorted((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name))
}

function rank({ kind }: OverviewModel): number {
  return kind === 'ensemble' ? 0 : 1
}

function textOf({ name, kind, platform, versions }: OverviewModel): string {
  const states = versions.map(({ state, reason }) => `${state} ${reason}`).join(' ')
  return `${name} ${kind} ${platform} ${states}`.toLowerCase()
}

function isReady({ versions }: OverviewModel): boolean {
  return versions.some(({ state }) => state === 'READY')
}

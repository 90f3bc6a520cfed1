import type { StepDetail } from '../api/model-detail.ts'
import type { ShownReplica } from '../api/replica.ts'
import { NumberHeads, State } from './parts.tsx'
import { formatMs, formatRate } from './rates.ts'
import { podsCommand, type Reading, type ReplicaRow, replicaRows } from './replica-rows.ts'

interface ReplicasViewProps {
  /** Steps of the ensemble; undefined for a model. */
  readonly steps: readonly StepDetail[] | undefined
  readonly model: string
  readonly now: Reading
  readonly before: Reading | undefined
  /** Namespace of the pods; undefined where no cluster is. */
  readonly namespace: string | undefined
}

const NUMBERS = [
  'In flight',
  'Of all',
  'Queued',
  'Requests',
  'Errors',
  'Queue',
  'Transfer',
  'Compute',
]

/** Shows the replicas of a model, or of an ensemble's steps, with their load and rates. */
export function ReplicasView({ steps, model, now, before, namespace }: ReplicasViewProps) {
  const rows = replicaRows({ steps: steps ?? [{ name: '', model }], now, before })
  const { leftOut } = now.replicas
  if (rows.length === 0) return <p class="quiet">No replica knows it.</p>
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label="Replicas">
        <table class="replicas">
          <thead>
            <tr>
              {steps && <th scope="col">Step</th>}
              <th scope="col">Replica</th>
              <th scope="col">State</th>
              <th scope="col">Versions</th>
              <th scope="col">Reached over</th>
              <NumberHeads titles={NUMBERS} />
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <Row
                key={`${row.step} ${row.replica.replica}`}
                row={row}
                hasStep={steps !== undefined}
              />
            ))}
          </tbody>
        </table>
      </div>
      <p class="quiet">
        Requests, errors and times are those of the last seconds, as this router counts them.
        {leftOut > 0 && ` ${leftOut.toLocaleString('en')} further replicas are not shown.`}
      </p>
      <Nodes command={namespace && podsCommand(namespace, rows)} />
    </>
  )
}

/** Heartbeats do not say the node of a pod. */
function Nodes({ command }: { readonly command: string | undefined }) {
  if (!command) return null
  return (
    <p class="quiet">
      On which nodes they are: <code class="mono">{command}</code>
    </p>
  )
}

function Row({ row, hasStep }: { readonly row: ReplicaRow; readonly hasStep: boolean }) {
  const { step, replica, versions, rates, isGone } = row
  return (
    <tr class={isGone ? 'gone' : ''}>
      {hasStep && <td>{step}</td>}
      <Name replica={replica} />
      <td>
        <ReplicaState replica={replica} isGone={isGone} />
      </td>
      <td>
        <VersionList versions={versions} />
      </td>
      <td>{replica.reachedOver || '–'}</td>
      <Load replica={replica} isGone={isGone} />
      <Figures rates={rates} />
    </tr>
  )
}

function Name({ replica: { host, replica } }: { readonly replica: ShownReplica }) {
  if (host === '') return <th scope="row">{replica}</th>
  return (
    <th scope="row">
      {host} <span class="mono quiet">{replica}</span>
    </th>
  )
}

function Load({ replica, isGone }: Pick<ReplicaRow, 'replica' | 'isGone'>) {
  const { inFlight, load } = replica
  const numbers = isGone ? [] : [inFlight, load?.inFlight, load?.queued]
  return [0, 1, 2].map((i) => (
    <td key={i} class="number">
      {numbers[i] ?? '–'}
    </td>
  ))
}

function Figures({ rates }: Pick<ReplicaRow, 'rates'>) {
  const failing = (rates?.failuresPerSecond ?? 0) > 0
  return (
    <>
      <td class="number">{formatRate(rates?.requestsPerSecond)}</td>
      <td class={failing ? 'number bad' : 'number'}>{formatRate(rates?.failuresPerSecond)}</td>
      {[rates?.queueMs, rates?.transferMs, rates?.computeMs].map((ms, i) => (
        <td key={i} class="number">
          {formatMs(ms)}
        </td>
      ))}
    </>
  )
}

function ReplicaState({
  replica: { state },
  isGone,
}: {
  readonly replica: ShownReplica
  readonly isGone: boolean
}) {
  if (isGone) return <span class="state bad">gone</span>
  const tone = { 'taking work': 'good', draining: 'idle', suspect: 'bad', 'other protocol': 'bad' }
  return <span class={`state ${tone[state]}`}>{state}</span>
}

/** Characters of a digest that tell revisions apart. */
const REVISION_LENGTH = 12

function VersionList({ versions }: { readonly versions: ShownReplica['versions'] }) {
  return versions.map(({ version, revision, state, reason }) => (
    <div key={version}>
      {version !== '' && <span class="quiet">v{version} </span>}
      <span class="mono" title={revision}>
        {revision.slice(0, REVISION_LENGTH)}
      </span>{' '}
      {state !== 'READY' && <State state={state} />}
      {reason !== '' && <p class={state === 'IDLE' ? 'quiet' : 'reason'}>{reason}</p>}
    </div>
  ))
}

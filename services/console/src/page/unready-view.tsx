import type { ClusterState, UnreadyResource } from '../api/cluster.ts'
import { fieldOf } from './field-of.ts'
import { linkTo } from './links.ts'
import { Panel } from './parts.tsx'

/** Lists the Models and Ensembles of the cluster that are not Ready, with the reasons. */
export function UnreadyView(o: {
  readonly cluster: ClusterState | undefined
  /** Models that have a view of their own. */
  readonly models: ReadonlySet<string>
}) {
  const { cluster, models } = o
  if (cluster === undefined) return null
  const { namespace, unready, leftOut, failure } = cluster
  if (failure !== '') {
    return (
      <p class="trouble" role="status">
        It is not known which Models and Ensembles the operator refused: {failure}
      </p>
    )
  }
  if (unready.length === 0) return null
  return (
    <Panel title="Models and Ensembles that are not ready">
      <div class="scroll unready" tabIndex={0} role="region" aria-label="Not ready">
        <table>
          <thead>
            <tr>
              <th scope="col">Resource</th>
              <th scope="col">State</th>
              <th scope="col">Reason</th>
              <th scope="col">What is wrong</th>
            </tr>
          </thead>
          <tbody>
            {unready.map((one) => (
              <Row key={`${one.kind} ${one.name}`} resource={one} models={models} />
            ))}
          </tbody>
        </table>
      </div>
      <p class="quiet">
        {leftOut > 0 && `${leftOut.toLocaleString('en')} further ones are not shown. `}
        The cluster keeps no file, so line numbers are missing here. To see steps and pods:{' '}
        <code class="mono">kubectl tutti status NAME --namespace {namespace}</code>
      </p>
    </Panel>
  )
}

function Row({
  resource,
  models,
}: {
  readonly resource: UnreadyResource
  readonly models: ReadonlySet<string>
}) {
  const { kind, name, model, state, reason, help } = resource
  const { field, text } = fieldOf(resource)
  return (
    <tr>
      <th scope="row">
        <span class="quiet">{kind}</span>{' '}
        {models.has(model) ? <a href={linkTo(model)}>{name}</a> : name}
        {model !== name && <span class="quiet"> serves {model}</span>}
      </th>
      <td>
        <span class={`state ${state === 'degraded' ? 'idle' : 'bad'}`}>{state}</span>
      </td>
      <td>
        <a href={help} target="_blank" rel="noreferrer">
          {reason}
        </a>
      </td>
      <td class="message">
        {field !== '' && <div class="mono">{field}</div>}
        {text}
      </td>
    </tr>
  )
}

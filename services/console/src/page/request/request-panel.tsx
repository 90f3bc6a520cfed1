import { useEffect, useState } from 'preact/hooks'
import type { ModelDetail } from '../../api/model-detail.ts'
import { type CaughtRequest, NextRequest } from '../../api/next-request.ts'
import { call } from '../api-client.ts'
import { Panel, Trouble } from '../parts.tsx'
import { usePoll } from '../use-poll.ts'
import { type Caught, CaughtView } from './caught-view.tsx'
import { type Wanted, WantedForm } from './wanted-form.tsx'

/** Name of this tab, as long as it is not loaded anew. */
const PAGE = crypto.getRandomValues(new Uint32Array(4)).join('-')
let turns = 0

interface Wait {
  readonly base: string
  readonly turn: number
  readonly wanted: Wanted
}

/** Waits for the next request of a model that the user wants (slow, failed, with an id), and shows its steps. */
export function RequestPanel({ detail }: { readonly detail: ModelDetail }) {
  const [waits, setWaits] = useState<Wait>()
  const [caught, setCaught] = useState<Caught>()
  const { name, mayCatch } = detail
  const base = `/console/api/models/${encodeURIComponent(name)}/next`
  const wait = (wanted: Wanted): void => {
    setCaught(undefined)
    setWaits({ base, turn: (turns += 1), wanted })
  }
  if (!mayCatch) {
    return (
      <Panel title="One request">
        <p class="quiet">
          Your identity may not change this server, so it does not see requests of others.
        </p>
      </Panel>
    )
  }
  return (
    <Panel title="One request">
      <WantedForm wait={wait} />
      {waits && (
        <Waiting
          key={waits.turn}
          wait={waits}
          found={(request) => {
            setWaits(undefined)
            setCaught({ request })
          }}
          stop={() => setWaits(undefined)}
        />
      )}
      {caught && <CaughtView {...caught} />}
    </Panel>
  )
}

function Waiting(o: {
  readonly wait: Wait
  readonly found: (request: CaughtRequest) => void
  readonly stop: () => void
}) {
  const { data, failure } = usePoll(pathOf(o.wait), NextRequest)
  useEffect(() => () => void stop(o.wait), [o.wait])
  const caught = data?.caught
  useEffect(() => {
    if (caught !== undefined) o.found(caught)
  }, [caught])
  return (
    <div class="row">
      {failure !== undefined && <Trouble failure={failure} hasData={data !== undefined} />}
      <p class="quiet" role="status">
        Waiting for a request that begins from now on
        {data !== undefined && data.seen > 0 && `; ${data.seen.toLocaleString('en')} were others`}
      </p>
      <button type="button" class="plain" onClick={o.stop}>
        Stop
      </button>
    </div>
  )
}

function pathOf({ base, turn, wanted }: Wait): string {
  const { want, slowerThanMs, id } = wanted
  const query = new URLSearchParams({ page: PAGE, turn: String(turn) })
  if (want !== undefined) query.set('want', want)
  if (slowerThanMs !== undefined) query.set('slowerThanMs', String(slowerThanMs))
  if (id !== undefined) query.set('id', id)
  return `${base}?${query}`
}

/** The server would record for some minutes more. */
async function stop(wait: Wait): Promise<void> {
  await call(pathOf({ ...wait, wanted: {} }), { keepalive: true }).catch(() => {
    // It is away, and has forgotten it.
  })
}

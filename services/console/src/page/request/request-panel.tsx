import { useEffect, useState } from 'preact/hooks'
import type { ModelDetail, Step } from '../../api/model-detail.ts'
import { type CaughtRequest, type NextQuery, NextRequest } from '../../api/next-request.ts'
import { call } from '../api-client.ts'
import { Panel, Trouble } from '../parts.tsx'
import { formatMs } from '../rates.ts'
import { Waterfall } from '../try/waterfall.tsx'
import { usePoll } from '../use-poll.ts'

type Wanted = Pick<NextQuery, 'want' | 'slowerThanMs' | 'id'>

/** Of this tab, as long as it is not loaded anew. */
const PAGE = crypto.getRandomValues(new Uint32Array(4)).join('-')
let turns = 0

interface Wait {
  readonly base: string
  readonly turn: number
  readonly wanted: Wanted
}

/** The next request of a model that is slow, fails or has an id, with what each step of it did. */
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
            setCaught({ request, steps: detail.graph?.steps ?? [] })
          }}
          stop={() => setWaits(undefined)}
        />
      )}
      {caught && <CaughtView {...caught} />}
    </Panel>
  )
}

interface Caught {
  readonly request: CaughtRequest
  /** Of when it was caught: they are read anew each second. */
  readonly steps: readonly Step[]
}

function WantedForm({ wait }: { readonly wait: (wanted: Wanted) => void }) {
  const [slowerThanMs, setSlower] = useState('100')
  const [id, setId] = useState('')
  return (
    <div class="wanted">
      <button type="button" onClick={() => wait({ want: 'any' })}>
        Next request
      </button>
      <button type="button" onClick={() => wait({ want: 'failed' })}>
        Next failed one
      </button>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          wait({ want: 'slow', slowerThanMs: Number(slowerThanMs) })
        }}
      >
        <button type="submit">Next slow one</button>
        <label>
          of at least{' '}
          <input
            type="number"
            min="0"
            step="any"
            required
            value={slowerThanMs}
            onInput={({ currentTarget: { value } }) => setSlower(value)}
          />{' '}
          ms
        </label>
      </form>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          wait({ want: 'id', id })
        }}
      >
        <button type="submit">Next with this id</button>
        <input
          type="text"
          aria-label="Request id or trace id"
          placeholder="request id or trace id"
          required
          value={id}
          onInput={({ currentTarget: { value } }) => setId(value)}
        />
      </form>
    </div>
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

function CaughtView({ request, steps }: Caught) {
  const { id, traceId, version, startedAt, elapsedMs, reason, spans } = request
  const failed = spans.findLast((span) => span.depth > 0 && span.reason === reason)
  return (
    <>
      <p role="status">
        Version {version} {reason === '' ? 'answered' : 'failed'} in {formatMs(elapsedMs)} at{' '}
        {new Date(startedAt).toLocaleTimeString('en-GB')}
        {reason !== '' && (
          <>
            : <span class="mono bad">{reason}</span>
            {failed && (
              <>
                {' '}
                of step <span class="mono">{failed.step || failed.model}</span>
              </>
            )}
          </>
        )}
        .
      </p>
      {(id !== '' || traceId !== '') && (
        <p class="quiet">
          {id !== '' && (
            <>
              Request id <span class="mono">{id}</span>
            </>
          )}
          {id !== '' && traceId !== '' && ', '}
          {traceId !== '' && (
            <>
              trace of its client <span class="mono">{traceId}</span>
            </>
          )}
        </p>
      )}
      <Waterfall recorded={request} steps={steps} />
    </>
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

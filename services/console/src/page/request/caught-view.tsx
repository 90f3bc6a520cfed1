import type { CaughtRequest } from '../../api/next-request.ts'
import { formatMs } from '../rates.ts'
import { Waterfall } from '../try/waterfall.tsx'

export interface Caught {
  readonly request: CaughtRequest
}

/** Shows a request that has ended: its result, and its steps in time. */
export function CaughtView({ request }: Caught) {
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
      <Waterfall recorded={request} />
    </>
  )
}

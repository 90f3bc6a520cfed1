import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { type InferenceBackend } from '@tutti/serving'
import { type WantedRequest, withoutInner } from '@tutti/telemetry'
import { z } from 'zod'
import { NextQuery, type NextRequest } from './api/next-request.ts'
import type { ConsoleSource } from './console-source.ts'
import { nextMs } from './next-ms.ts'

/** Milliseconds between two questions of a page that waits. */
const WAIT_MS = 500

export interface NextRequestOptions {
  readonly source: Pick<ConsoleSource, 'waitForRequest' | 'stopWaiting'>
  readonly backend: InferenceBackend
  readonly model: string
  readonly query: URLSearchParams
  readonly clock: Pick<Clock, 'now'>
}

/**
 * Checks whether a caller may see requests of others, replicas and the cluster. Where callers have identities, only those who may
 * change the server may.
 */
export function maySeeOperations({ identity }: Pick<InferenceBackend, 'identity'>): boolean {
  return identity?.mayControl ?? true
}

/**
 * Answers a page that waits for a request of a model: with the request once it has ended, until then with the count of others.
 *
 * @throws ServeError ACCESS_DENIED, MODEL_NOT_FOUND for a model that the caller's index does not name, INVALID_PARAMETER,
 * OVERLOADED
 */
export async function readNextRequest(o: NextRequestOptions): Promise<NextRequest> {
  const { source, backend, model, clock } = o
  const { identity } = backend
  if (!maySeeOperations(backend)) {
    const name = identity?.name ?? ''
    throw new ServeError('ACCESS_DENIED', `identity '${name}' may not see requests of others`)
  }
  const index = await backend.repositoryIndex(false)
  if (!index.some(({ name }) => name === model)) {
    throw new ServeError('MODEL_NOT_FOUND', `model '${model}' is not found`)
  }
  const query = parseQuery(o.query)
  // A name that another identity's page has too is not its capture.
  const page = `${identity?.name ?? ''} ${query.page}`
  const { turn } = query
  const times = { atMs: clock.now(), nextMs: nextMs(WAIT_MS, index.length) }
  if (query.want === undefined) {
    source.stopWaiting({ page, turn })
    return { ...times, seen: 0 }
  }
  const wanted = toWanted(model, query)
  const { seen, caught } = source.waitForRequest({ page, turn, wanted })
  const shown = caught && identity ? { ...caught, ...withoutInner(caught) } : caught
  return { ...times, seen, ...(shown && { caught: shown }) }
}

function parseQuery(written: URLSearchParams): NextQuery {
  const parsed = NextQuery.safeParse(Object.fromEntries(written))
  if (!parsed.success) throw invalid(z.prettifyError(parsed.error))
  return parsed.data
}

function toWanted(model: string, { want, slowerThanMs, id }: NextQuery): WantedRequest {
  if (want === 'failed') return { model, isFailed: true }
  if (want === 'slow') {
    if (slowerThanMs === undefined) throw invalid("got want 'slow' without slowerThanMs")
    return { model, slowerThanMs }
  }
  if (want !== 'id') return { model }
  if (id === undefined) throw invalid("got want 'id' without id")
  return { model, id }
}

function invalid(text: string): ServeError {
  return new ServeError('INVALID_PARAMETER', `the next request: ${text}`)
}

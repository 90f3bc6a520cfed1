import { useEffect, useState } from 'preact/hooks'
import type { z } from 'zod'
import { CallFailure, getJson } from './api-client.ts'

/** Milliseconds over which rates are taken; two readings at least. */
const WINDOW_MS = 5000
/** Wait after a failure. */
const RETRY_MS = 2000

/** The fields of an answer that the page needs to ask again. */
interface Sample {
  readonly atMs: number
  readonly nextMs: number
}

export interface Polled<T> {
  /** The latest answer; kept while the server does not answer. */
  readonly data: T | undefined
  /** An answer from some seconds before, for rates. */
  readonly before: T | undefined
  /** Failure of the latest call; undefined if it succeeded. */
  readonly failure: CallFailure | undefined
}

const NOTHING = { data: undefined, before: undefined, failure: undefined }

/**
 * Reads a path again and again while the page is visible. After each answer it waits for the `nextMs` of that answer. Another
 * path starts anew.
 */
export function usePoll<T extends Sample>(path: string, schema: z.ZodType<T>): Polled<T> {
  const [polled, setPolled] = useState<Polled<T>>(NOTHING)
  useEffect(() => {
    setPolled(NOTHING)
    const ending = new AbortController()
    void poll(path, schema, { signal: ending.signal, show: setPolled })
    return () => ending.abort()
  }, [path])
  return polled
}

interface PollOptions<T> {
  readonly signal: AbortSignal
  readonly show: (polled: Polled<T>) => void
}

async function poll<T extends Sample>(
  path: string,
  schema: z.ZodType<T>,
  { signal, show }: PollOptions<T>,
): Promise<void> {
  let samples: readonly T[] = []
  while (!signal.aborted) {
    let pauseMs = RETRY_MS
    await visible(signal)
    try {
      const data = await getJson(path, schema, signal)
      // A server that was started anew has another clock.
      const isSame = data.atMs > (samples.at(-1)?.atMs ?? 0)
      const oldest = data.atMs - Math.max(WINDOW_MS, 2 * data.nextMs)
      const kept = isSame ? samples.filter((one) => one.atMs > oldest) : []
      samples = [...kept, data]
      pauseMs = data.nextMs
      show({ data, before: kept[0], failure: undefined })
    } catch (error) {
      if (signal.aborted) return
      const failure = error instanceof CallFailure ? error : new CallFailure(0, String(error))
      show({ data: samples.at(-1), before: undefined, failure })
      // The page asks its user, and starts anew: the same token again would only be refused again.
      if (failure.status === 401) return
    }
    await pause(pauseMs, signal)
  }
}

function visible(signal: AbortSignal): Promise<void> {
  if (document.visibilityState === 'visible') return Promise.resolve()
  return new Promise((resolve) => {
    document.addEventListener('visibilitychange', () => resolve(), { once: true, signal })
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      // A page may stay open for days.
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
  })
}

import { backoffMs, type OpenTransfer, sleep, type Transfer } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { FetchContext } from './fetch-options.ts'

const FIRST_MS = 250
const LONGEST_MS = 15_000

/**
 * Calls `attempt` again while the artifact is unavailable. Only consecutive attempts without progress count, so that a large model
 * of many files comes through a bad line.
 *
 * @param done - the files that are whole; the next attempt goes on with the others.
 * @throws ServeError of the last attempt; any other error at once.
 */
export async function persist<T>(
  o: Pick<FetchContext, 'bounds' | 'clock' | 'signal' | 'random' | 'log'>,
  done: ReadonlySet<string>,
  attempt: () => Promise<T>,
): Promise<T> {
  let failures = 0
  let mostFiles = 0
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof ServeError) || error.reason !== 'ARTIFACT_UNAVAILABLE') throw error
      failures = done.size > mostFiles ? 1 : failures + 1
      mostFiles = Math.max(mostFiles, done.size)
      if (failures >= o.bounds.attempts) throw error
      const { random = Math.random } = o
      const delayMs = backoffMs(failures - 1, { firstMs: FIRST_MS, longestMs: LONGEST_MS, random })
      o.log.warn('fetch failed, trying again', { error: error.message, delayMs })
      await sleep(delayMs, o)
    }
  }
}

/**
 * Runs a fetch, and ends its transfer when the fetch succeeds or fails.
 *
 * @param open - opens the transfer; undefined if nothing shows progress.
 * @param fetchIt - gets the transfer, and an empty set for the files that are whole, for `persist`.
 */
export async function following<T>(
  open: OpenTransfer | undefined,
  what: string,
  fetchIt: (transfer: Transfer | undefined, done: Set<string>) => Promise<T>,
): Promise<T> {
  const transfer = open?.(what)
  let isWhole = false
  try {
    const found = await fetchIt(transfer, new Set())
    isWhole = true
    return found
  } finally {
    transfer?.end(isWhole)
  }
}

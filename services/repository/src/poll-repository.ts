import { type Clock, sleep } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { RepositoryChanges, RepositoryWatch } from './repository-watch.ts'

export interface PollingOptions {
  readonly watch: Pick<RepositoryWatch, 'look'>
  /** Milliseconds between two looks. */
  readonly pollMs: number
  readonly clock: Clock
  /** Ends the polling. */
  readonly signal: AbortSignal
  /** Applies the changes. The next look begins after this resolves; it never rejects. */
  apply(changes: RepositoryChanges): Promise<void>
  /** Reports that the repositories could not be read. The next look tries again. */
  failed(error: ServeError): void
}

/** Time after which a change is looked at again, before the next poll: it counts when two looks agree. */
const SETTLE_MS = 1000

/** Looks for changes until the signal aborts. Resolves then. */
export async function pollRepository(o: PollingOptions): Promise<void> {
  const { clock, signal } = o
  let waitMs = o.pollMs
  while (!signal.aborted) {
    // The signal is the only thing that ends a sleep early.
    await sleep(waitMs, { clock, signal }).catch(() => {})
    if (signal.aborted) return
    waitMs = o.pollMs
    try {
      const changes = await o.watch.look()
      if (changes.isSettling) waitMs = Math.min(o.pollMs, SETTLE_MS)
      if (changes.changed.length > 0 || changes.removed.length > 0) await o.apply(changes)
    } catch (error) {
      // Work that is given up has not failed.
      if (!signal.aborted) o.failed(ServeError.from(error))
    }
  }
}

import { backoffMs, type Clock } from '@tutti/chassis'
import type { StepDescription } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'

export interface StepWatchOptions {
  /** Asks a step what it serves. */
  describe(replica: string, o: { readonly signal: AbortSignal }): Promise<StepDescription>
  /** Takes the answer to the latest question to a step that is still there. */
  described(replica: string, description: StepDescription): void
  /** A question failed and will be asked again after `delayMs`. */
  failed(replica: string, error: ServeError, delayMs: number): void
  readonly clock: Clock
  readonly random?: () => number
  /** Questions that are open at the same time; 4 if absent. Descriptions may be large, and many steps may come at once. */
  readonly parallelism?: number
}

interface Watched {
  /** Aborts the open question, or takes back the wait for the next one. */
  stop: () => void
  failures: number
  isDescribed: boolean
}

const DEFAULT_PARALLELISM = 4
const BACKOFF = { firstMs: 100, longestMs: 5000 }

/**
 * Keeps the descriptions of steps up to date: level-based, so that any number of changes leads to one question, and the answer to
 * a question that was asked before the last change is not used.
 */
export class StepWatch {
  readonly #o: StepWatchOptions
  readonly #watched = new Map<string, Watched>()
  /** Replicas to ask, in turn; a set, so that each waits once. */
  readonly #due = new Set<string>()
  #open = 0

  constructor(o: StepWatchOptions) {
    this.#o = o
  }

  /** True if every step that is there has been described. */
  get isSettled(): boolean {
    for (const { isDescribed } of this.#watched.values()) if (!isDescribed) return false
    return true
  }

  /** The step is there, and what it serves may have changed. */
  changed(replica: string): void {
    const known = this.#watched.get(replica)
    known?.stop()
    this.#watched.set(replica, {
      stop: () => {},
      failures: 0,
      isDescribed: known?.isDescribed ?? false,
    })
    this.#due.add(replica)
    this.#ask()
  }

  gone(replica: string): void {
    this.#watched.get(replica)?.stop()
    this.#watched.delete(replica)
    this.#due.delete(replica)
  }

  close(): void {
    for (const replica of this.#watched.keys()) this.gone(replica)
  }

  #ask(): void {
    const bound = this.#o.parallelism ?? DEFAULT_PARALLELISM
    for (const replica of this.#due) {
      if (this.#open >= bound) return
      this.#due.delete(replica)
      const watched = this.#watched.get(replica)
      if (watched !== undefined) void this.#question(replica, watched)
    }
  }

  async #question(replica: string, watched: Watched): Promise<void> {
    this.#open += 1
    const cancel = new AbortController()
    watched.stop = () => cancel.abort(new ServeError('CANCELLED', 'the question is out of date'))
    try {
      const description = await this.#o.describe(replica, { signal: cancel.signal })
      if (this.#watched.get(replica) === watched) {
        watched.isDescribed = true
        this.#o.described(replica, description)
      }
    } catch (error) {
      if (this.#watched.get(replica) === watched) this.#retry(replica, watched, error)
    }
    this.#open -= 1
    this.#ask()
  }

  #retry(replica: string, watched: Watched, error: unknown): void {
    const { clock, random } = this.#o
    const delayMs = backoffMs(watched.failures, {
      ...BACKOFF,
      ...(random !== undefined && { random }),
    })
    watched.failures += 1
    this.#o.failed(replica, ServeError.from(error), delayMs)
    watched.stop = clock.setTimer(delayMs, () => {
      this.#due.add(replica)
      this.#ask()
    })
  }
}

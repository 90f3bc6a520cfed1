import { RoundRobin } from './round-robin.ts'

export interface KeyedLimiterOptions {
  /** Most turns at once, over all keys; default: no bound. */
  readonly total?: number
  /** Most turns of one key at once; default: `total`. */
  readonly perKey?: number
}

/** Ends a turn; repeated calls have no effect. */
export type Release = () => void

/**
 * Limits how many turns are taken at once, in total and per key. Waiting callers get their turns first in, first out within a
 * key, and round robin between keys. A key without turns and without waiting callers takes no memory.
 */
export class KeyedLimiter {
  readonly #total: number
  readonly #perKey: number
  readonly #taken = new Map<string, number>()
  readonly #waiting = new RoundRobin<(release: Release) => void>()
  #sum = 0

  constructor({ total = Number.POSITIVE_INFINITY, perKey = total }: KeyedLimiterOptions) {
    this.#total = total
    this.#perKey = perKey
  }

  hasCapacity(key: string): boolean {
    return this.#sum < this.#total && (this.#taken.get(key) ?? 0) < this.#perKey
  }

  /** Begins a turn now, or returns undefined if the key or the total is at its limit. */
  tryAcquire(key: string): Release | undefined {
    return this.hasCapacity(key) ? this.#begin(key) : undefined
  }

  /** Waits for a turn. The caller ends it with the returned `Release`. @throws the signal's reason as soon as it aborts. */
  async acquire(key: string, signal?: AbortSignal): Promise<Release> {
    signal?.throwIfAborted()
    const release = this.tryAcquire(key)
    if (release !== undefined) return release
    const { promise, resolve, reject } = Promise.withResolvers<Release>()
    this.#waiting.add(key, resolve)
    const onAbort = (): void => {
      if (this.#waiting.delete(key, resolve)) reject(signal?.reason)
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    try {
      return await promise
    } finally {
      signal?.removeEventListener('abort', onAbort)
    }
  }

  /** Waits for a turn, does the work and ends the turn, also if the work fails. @throws as the work and as `acquire` */
  async run<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const release = await this.acquire(key, signal)
    try {
      return await work()
    } finally {
      release()
    }
  }

  #begin(key: string): Release {
    this.#sum += 1
    this.#taken.set(key, (this.#taken.get(key) ?? 0) + 1)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      this.#end(key)
    }
  }

  #end(key: string): void {
    this.#sum -= 1
    const left = (this.#taken.get(key) ?? 0) - 1
    if (left > 0) this.#taken.set(key, left)
    else this.#taken.delete(key)
    for (;;) {
      const next = this.#waiting.take((one) => this.hasCapacity(one))
      if (next === undefined) return
      next.item(this.#begin(next.key))
    }
  }
}

import { RoundRobin } from './round-robin.ts'

export interface KeyedLimiterOptions {
  /** Turns that go on at once; default: no bound. */
  readonly total?: number
  /** Turns of one key that go on at once; default: no bound. */
  readonly perKey?: number
}

/** Ends a turn; repeated calls have no effect. */
export type Release = () => void

/**
 * Bounds what goes on at once, in total and per key. Those that wait for a turn get it first in, first out within a key, and round
 * robin between keys. Nothing is kept of a key that has no turn and waits for none.
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

  /** Begins a turn now; undefined if it is at its limit. */
  tryAcquire(key: string): Release | undefined {
    return this.hasCapacity(key) ? this.#begin(key) : undefined
  }

  /** Waits for a turn. @throws the signal's reason as soon as it aborts. */
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

  /** Does the work in a turn. */
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

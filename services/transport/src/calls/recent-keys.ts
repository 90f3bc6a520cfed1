/** Number of ended calls that are remembered, and of calls whose other side is told once the broker is back. */
export const TOMBSTONES = 65_536
/** Milliseconds for which they are remembered; no message is late by that much. */
export const TOMBSTONE_MS = 60_000

/** Remembers keys for a while, a bounded number of them: the oldest go first. */
export class RecentKeys {
  /** Time at which each key was added, oldest first. */
  readonly #addedAt = new Map<string, number>()

  get size(): number {
    return this.#addedAt.size
  }

  add(now: number, key: string): void {
    this.#addedAt.delete(key)
    this.#addedAt.set(key, now)
    for (const oldest of this.#addedAt.keys()) {
      if (this.#addedAt.size <= TOMBSTONES) break
      this.#addedAt.delete(oldest)
    }
  }

  has(key: string): boolean {
    return this.#addedAt.has(key)
  }

  /** Forgets what is too old. */
  tick(now: number): void {
    for (const [key, addedAt] of this.#addedAt) {
      if (now - addedAt < TOMBSTONE_MS) break
      this.#addedAt.delete(key)
    }
  }
}

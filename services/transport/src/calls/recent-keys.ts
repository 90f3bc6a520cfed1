/** Remembers keys for a while, a bounded number of them: the oldest go first. */
export class RecentKeys {
  readonly #most: number
  readonly #ageMs: number
  /** In the order in which they were added, so the oldest is the first. */
  readonly #addedAt = new Map<string, number>()

  constructor(most: number, ageMs: number) {
    this.#most = most
    this.#ageMs = ageMs
  }

  get size(): number {
    return this.#addedAt.size
  }

  add(now: number, key: string): void {
    this.#addedAt.delete(key)
    this.#addedAt.set(key, now)
    for (const oldest of this.#addedAt.keys()) {
      if (this.#addedAt.size <= this.#most) break
      this.#addedAt.delete(oldest)
    }
  }

  has(key: string): boolean {
    return this.#addedAt.has(key)
  }

  /** Forgets what is too old. */
  tick(now: number): void {
    for (const [key, addedAt] of this.#addedAt) {
      if (now - addedAt < this.#ageMs) break
      this.#addedAt.delete(key)
    }
  }
}

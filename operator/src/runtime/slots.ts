export interface SlotsOptions {
  /** Slots that are taken at the same time. */
  readonly most: number
  /** Of those that were taken, how many may be lent to others at the same time. */
  readonly mostLent: number
  /** A slot is free. */
  readonly onFree: () => void
}

/** A slot that somebody has taken. */
export interface Slot {
  /** Lends the slot to others while it is waited. Whoever comes back goes before those who are new. */
  aside<T>(wait: () => Promise<T>): Promise<T>
  /** Gives the slot back, for good; repeated calls have no effect. */
  release(): void
}

/** A number of slots for what goes on at once. */
export class Slots {
  readonly #o: SlotsOptions
  #taken = 0
  #lent = 0
  /** Those who have lent theirs and want one again, in the order in which they came back. */
  readonly #returning: (() => void)[] = []

  constructor(o: SlotsOptions) {
    this.#o = o
  }

  get hasFree(): boolean {
    return this.#taken < this.#o.most
  }

  /** Takes a slot that is free. */
  take(): Slot {
    this.#taken += 1
    const state = { isHeld: true, isReleased: false }
    return {
      aside: (wait) => this.#aside(state, wait),
      release: () => {
        state.isReleased = true
        if (!state.isHeld) return
        state.isHeld = false
        this.#give()
      },
    }
  }

  async #aside<T>(
    state: { isHeld: boolean; isReleased: boolean },
    wait: () => Promise<T>,
  ): Promise<T> {
    if (!state.isHeld || this.#lent >= this.#o.mostLent) return await wait()
    state.isHeld = false
    this.#lent += 1
    this.#give()
    try {
      return await wait()
    } finally {
      await this.#takeAgain()
      this.#lent -= 1
      // It may have been released meanwhile, for good.
      if (state.isReleased) this.#give()
      else state.isHeld = true
    }
  }

  #give(): void {
    const next = this.#returning.shift()
    if (next !== undefined) {
      next()
      return
    }
    this.#taken -= 1
    this.#o.onFree()
  }

  async #takeAgain(): Promise<void> {
    if (this.hasFree) this.#taken += 1
    else await new Promise<void>((resolve) => this.#returning.push(resolve))
  }
}

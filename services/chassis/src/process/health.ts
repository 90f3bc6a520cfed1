/** Whether a process lives and takes work, with what stands against it. One owner writes, the endpoints read. */
export interface Health {
  /** False once the process is beyond help or has begun to close. */
  readonly isLive: boolean
  /** True while it lives and no cause holds it back. */
  readonly isReady: boolean
  /** Texts of the causes that hold it back, in the order in which they came. */
  readonly reasons: readonly string[]
  /** Not ready for `cause`, a short name that has one text at a time. */
  hold(cause: string, reason: string): void
  /** Takes the cause back; without effect if it does not stand. */
  release(cause: string): void
  /** No longer alive, for good. */
  die(reason: string): void
}

/** Makes a health state that is live and held back by `starting`, until the lifecycle releases it. */
export function createHealth(): Health {
  return new HealthState()
}

/**
 * The same health with causes that are looked up at each reading, for what has a state of its own (a connection, a queue).
 *
 * @param causes - what holds the process back right now; none if it may be ready.
 */
export function withCauses(
  health: Health,
  causes: () => readonly string[],
): Pick<Health, 'isLive' | 'isReady' | 'reasons'> {
  return {
    get isLive() {
      return health.isLive
    },
    get isReady() {
      return health.isReady && causes().length === 0
    },
    get reasons() {
      return [...health.reasons, ...causes()]
    },
  }
}

/** The cause that a new state starts with. */
export const STARTING = 'starting'

class HealthState implements Health {
  readonly #causes = new Map<string, string>([[STARTING, 'the server is starting']])
  #isLive = true

  get isLive(): boolean {
    return this.#isLive
  }

  get isReady(): boolean {
    return this.#isLive && this.#causes.size === 0
  }

  get reasons(): readonly string[] {
    return [...this.#causes.values()]
  }

  hold(cause: string, reason: string): void {
    this.#causes.set(cause, reason)
  }

  release(cause: string): void {
    this.#causes.delete(cause)
  }

  die(reason: string): void {
    this.#isLive = false
    this.#causes.set('dead', reason)
  }
}

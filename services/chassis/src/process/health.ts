/**
 * Liveness and readiness of a process, and the causes that hold readiness back. One owner writes them, the endpoints read them.
 */
export interface Health {
  /** False once the process is beyond help or has begun to close. */
  readonly isLive: boolean
  /** True while it lives and no cause holds it back. */
  readonly isReady: boolean
  /** Texts of the causes that hold it back, in the order in which they came. */
  readonly reasons: readonly string[]
  /** Makes the process not ready for `cause`, a short name. A further call with the same cause replaces its text. */
  hold(cause: string, reason: string): void
  /** Removes a cause. No effect if the cause is not held. */
  release(cause: string): void
  /** Makes the process not live, for good. */
  die(reason: string): void
}

/** Makes a health state that is live and held back by `starting`, until the lifecycle releases it. */
export function createHealth(): Health {
  return new HealthState()
}

/**
 * Adds causes to a health that are looked up at each reading, for parts that have a state of their own (a connection, a queue).
 *
 * @param causes - finds what holds the process back right now; none if it may be ready.
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

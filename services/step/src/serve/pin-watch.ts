import { type Clock, sleep } from '@tutti/chassis'
import type { PinnedVersion } from '@tutti/ensemble'
import { type Reason, ServeError } from '@tutti/errors'
import type { StepPeer } from '@tutti/transport'

/** Between two questions: a replaced version costs memory, not work. */
const ASK_EVERY_MS = 200

/** A router that is gone has no requests, and one that does not know the question counts none. */
const NOBODY: ReadonlySet<Reason> = new Set<Reason>([
  'STEP_UNAVAILABLE',
  'STEP_LOST',
  'UNSUPPORTED',
])

interface Waiting {
  readonly pin: PinnedVersion
  readonly resolve: () => void
}

/** Asks the routers which of the versions that were replaced may still be asked for; all in one question. */
export class PinWatch {
  readonly #replica: string
  readonly #clock: Clock
  readonly #peer: () => Pick<StepPeer, 'isConnected' | 'askRouters'> | undefined
  readonly #closing = new AbortController()
  #waiting: Waiting[] = []
  #isAsking = false

  constructor(o: {
    readonly replica: string
    readonly clock: Clock
    /** Undefined until the step has joined its routers. */
    readonly peer: () => Pick<StepPeer, 'isConnected' | 'askRouters'> | undefined
  }) {
    this.#replica = o.replica
    this.#clock = o.clock
    this.#peer = o.peer
  }

  /** Resolves once no router has a request that pinned the version; at once without routers, and after `close`. */
  untilUnpinned(pin: PinnedVersion): Promise<void> {
    if (this.#closing.signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      this.#waiting.push({ pin, resolve })
      if (!this.#isAsking) void this.#askAgain()
    })
  }

  /** Asks nobody any more; who waits need not. */
  close(): void {
    this.#closing.abort(new ServeError('SERVER_STOPPING', 'the step closes'))
    for (const { resolve } of this.#waiting.splice(0)) resolve()
  }

  async #askAgain(): Promise<void> {
    const { signal } = this.#closing
    this.#isAsking = true
    while (this.#waiting.length > 0 && !signal.aborted) {
      await this.#ask(signal)
      if (this.#waiting.length === 0) break
      // The signal is the only thing that ends a sleep early.
      await sleep(ASK_EVERY_MS, { clock: this.#clock, signal }).catch(() => {})
    }
    this.#isAsking = false
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const peer = this.#peer()
    const asked = [...this.#waiting]
    // While the broker is away routers may still have requests, and nobody can say so.
    if (peer !== undefined && !peer.isConnected) return
    const pins = asked.map(({ pin }) => [pin.model, pin.version, pin.revision])
    const answers =
      (await peer?.askRouters('unpinned', { replica: this.#replica, pins }, { signal })) ?? []
    const free = new Set(asked.filter((_, i) => answers.every((answer) => isFree(answer, i))))
    this.#waiting = this.#waiting.filter((waiting) => !free.has(waiting))
    for (const { resolve } of free) resolve()
  }
}

function isFree(answer: PromiseSettledResult<unknown>, index: number): boolean {
  if (answer.status === 'rejected') return NOBODY.has(ServeError.from(answer.reason).reason)
  const list: readonly unknown[] = Array.isArray(answer.value) ? answer.value : []
  return list[index] === true
}

import { type Clock, sleep } from '@tutti/chassis'
import type { PinnedVersion } from '@tutti/ensemble'
import { type Reason, ServeError } from '@tutti/errors'
import type { StepEndpoint } from '@tutti/transport'

/** Between two questions: a replaced version costs memory, not work. */
const ASK_EVERY_MS = 200

/** A router that is gone has no requests, and one that does not know the question counts none. */
const NOBODY: ReadonlySet<Reason> = new Set<Reason>([
  'STEP_UNAVAILABLE',
  'STEP_LOST',
  'UNSUPPORTED',
])

/** Asks the routers whether versions that were replaced may still be asked for. */
export class PinWatch {
  readonly #replica: string
  readonly #clock: Clock
  readonly #member: () => Pick<StepEndpoint, 'isConnected' | 'askRouters'> | undefined
  readonly #closing = new AbortController()

  constructor(o: {
    readonly replica: string
    readonly clock: Clock
    /** Undefined until the step has joined its routers. */
    readonly member: () => Pick<StepEndpoint, 'isConnected' | 'askRouters'> | undefined
  }) {
    this.#replica = o.replica
    this.#clock = o.clock
    this.#member = o.member
  }

  /** Resolves once no router has a request that pinned the version; at once without routers, and after `close`. */
  async untilUnpinned(pin: PinnedVersion): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted && !(await this.#isUnpinned(pin, signal))) {
      // The signal is the only thing that ends a sleep early.
      await sleep(ASK_EVERY_MS, { clock: this.#clock, signal }).catch(() => {})
    }
  }

  /** Asks no router any more; what waits ends. */
  close(): void {
    this.#closing.abort(new ServeError('SERVER_STOPPING', 'the step closes'))
  }

  async #isUnpinned(pin: PinnedVersion, signal: AbortSignal): Promise<boolean> {
    const member = this.#member()
    if (member === undefined) return true
    // While the broker is away routers may still have requests, and cannot say so.
    if (!member.isConnected) return false
    const pins = [[pin.model, pin.version, pin.revision]]
    const question = { replica: this.#replica, pins }
    return (await member.askRouters('unpinned', question, { signal })).every(isFree)
  }
}

function isFree(answer: PromiseSettledResult<unknown>): boolean {
  if (answer.status === 'rejected') return NOBODY.has(ServeError.from(answer.reason).reason)
  return Array.isArray(answer.value) && answer.value[0] === true
}

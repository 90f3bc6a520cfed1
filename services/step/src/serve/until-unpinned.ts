import type { PinnedVersion } from '@tutti/api'
import { type Clock, sleep } from '@tutti/chassis'
import { type Reason, ServeError } from '@tutti/errors'
import type { StepEndpoint } from '@tutti/transport'

/** Time between two questions: a replaced version costs memory, not work. */
const ASK_EVERY_MS = 200

/** Failures of a router that is gone and has no requests, or of one that does not know the question and counts none. */
const HAS_NO_PINS: ReadonlySet<Reason> = new Set<Reason>([
  'STEP_UNAVAILABLE',
  'STEP_LOST',
  'UNSUPPORTED',
])

export interface UnpinnedOptions {
  readonly replica: string
  readonly clock: Clock
  /** Finds the step's member on the broker; undefined until the step has joined its routers. */
  readonly member: () => Pick<StepEndpoint, 'isConnected' | 'askRouters'> | undefined
  readonly signal: AbortSignal
}

/** Waits until no router has a request that pinned the version. Resolves at once without routers, and when the signal aborts. */
export async function untilUnpinned(pin: PinnedVersion, o: UnpinnedOptions): Promise<void> {
  const { clock, signal } = o
  while (!signal.aborted && !(await isUnpinned(pin, o))) {
    // The signal is the only thing that ends a sleep early.
    await sleep(ASK_EVERY_MS, { clock, signal }).catch(() => {})
  }
}

async function isUnpinned(
  { model, version, revision }: PinnedVersion,
  { replica, signal, ...o }: UnpinnedOptions,
): Promise<boolean> {
  const member = o.member()
  if (member === undefined) return true
  // While the broker is away routers may still have requests, and cannot say so.
  if (!member.isConnected) return false
  const question = { replica, pins: [[model, version, revision]] }
  const answers = await member.askRouters('unpinned', question, { signal })
  return answers.every((answer) =>
    answer.status === 'rejected'
      ? HAS_NO_PINS.has(ServeError.from(answer.reason).reason)
      : Array.isArray(answer.value) && answer.value[0] === true,
  )
}

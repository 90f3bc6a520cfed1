import { type Clock, signalError } from '@tutti/chassis'
import type { CancelSignal, ServeError } from '@tutti/errors'
import type { ServedRevision, StepDirectory } from '@tutti/transport'

/** Longer than the transport takes to hear a suspect again or to find it dead; without a broker it does neither. */
const VERDICT_MS = 4000

/**
 * Waits while every replica of a revision is suspect: each is heard again or dead soon, and a pause of the only one, a long
 * collection say, should cost time and no requests.
 *
 * @param o.giveUpAt - of an earlier wait for the same attempt.
 * @param o.decided - called back once, when to look again; with the time until which to wait if nothing has changed.
 * @param o.failed - called back once instead: the signal's reason, or undefined if the time is over.
 * @returns false if nobody is suspect, or the time is over; then nothing is called.
 */
export function awaitReplica(o: {
  readonly directory: Pick<StepDirectory, 'whenDecided'>
  readonly clock: Clock
  readonly revision: ServedRevision
  readonly signal: CancelSignal
  readonly giveUpAt: number | undefined
  readonly decided: (giveUpAt: number) => void
  readonly failed: (reason: ServeError | undefined) => void
}): boolean {
  const { clock, signal } = o
  const now = clock.now()
  const giveUpAt = o.giveUpAt ?? now + VERDICT_MS
  if (signal.aborted || now >= giveUpAt) return false
  const leave = o.directory.whenDecided(o.revision, () => {
    end()
    o.decided(giveUpAt)
  })
  if (leave === undefined) return false
  const fail = (reason: ServeError | undefined): void => {
    leave()
    end()
    o.failed(reason)
  }
  const stopTimer = clock.setTimer(giveUpAt - now, () => fail(undefined))
  const onAbort = (): void => fail(signalError(signal))
  signal.addEventListener('abort', onAbort, { once: true })
  function end(): void {
    stopTimer()
    signal.removeEventListener('abort', onAbort)
  }
  return true
}

import { type Clock, signalError } from '@tutti/chassis'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { ResponseSink } from '@tutti/tensor'
import {
  type AcquireOptions,
  type Replica,
  revisionKey,
  type ServedRevision,
  type StepDirectory,
} from '@tutti/transport'
import { noReplica, type ResolvedEntry } from '../catalog/catalog.ts'
import type { Pin } from './pin.ts'
import type { RequestDependencies } from './request-dependencies.ts'

/**
 * Takes a place at a replica of another revision, where none still takes work for the pinned one and nothing ran under it.
 *
 * @throws ServeError REVISION_GONE if the request may not move, STEP_UNAVAILABLE if there is no replica.
 */
export function acquireMoved(
  { directory, liveRevisions }: Pick<RequestDependencies, 'directory' | 'liveRevisions'>,
  resolved: ResolvedEntry,
  pin: Pin,
  options: AcquireOptions,
): Replica {
  const { model, version, revision } = pin.target
  const served = liveRevisions(model, version).filter((live) =>
    directory.isServed({ model, version, revision: live.revision }),
  )
  if (served.length === 0) throw noReplica(pin.target)
  const signature = resolved.version.revisions[0]?.signature
  const next = served.find((live) => live.signature === signature)
  if (next === undefined || pin.uses > 0) {
    const why =
      next === undefined
        ? 'what is served now has other inputs or outputs'
        : 'the request has used it already'
    const text = `model '${model}' version ${version}: revision ${revision} is pinned and no longer served; ${why}`
    throw new ServeError('REVISION_GONE', text, { details: { model, version: String(version) } })
  }
  pin.target = { model, version, revision: next.revision }
  pin.key = revisionKey(pin.target)
  const replica = directory.places.acquire(pin.target, options)
  if (replica === undefined) throw noReplica(pin.target)
  return replica
}

/** Longer than the transport takes to decide about a suspect replica; without a broker it does not decide. */
const DECISION_MS = 4000

/**
 * Waits while every replica of a revision is suspect: each answers again or is dead soon, and a pause of the only one, a long
 * garbage collection for example, should cost time and no requests. If none is suspect, the attempt is held for a Model that
 * sleeps, and else fails; it fails too if the time is over.
 *
 * @param o.error - that of the attempt.
 * @param o.giveUpAt - of an earlier wait for the same attempt.
 * @param o.again - called back once, when to look again; with the time until which to wait if nothing has changed.
 * @param o.hold - waits for the first replica of a Model that sleeps; false if there is nothing to wait for.
 * @param o.sink - fails with the signal's reason if the caller leaves.
 */
export function awaitReplica(o: {
  readonly error: ServeError
  readonly directory: Pick<StepDirectory, 'whenDecided'>
  readonly clock: Clock
  readonly revision: ServedRevision
  readonly signal: CancelSignal
  readonly giveUpAt: number | undefined
  readonly again: (giveUpAt: number) => void
  readonly hold?: () => boolean
  readonly sink: Pick<ResponseSink, 'fail'>
}): void {
  const { clock, signal, error, sink } = o
  const now = clock.now()
  const giveUpAt = o.giveUpAt ?? now + DECISION_MS
  if (error.reason !== 'STEP_UNAVAILABLE' || signal.aborted) return sink.fail(error, 'no')
  const decided = (): void => {
    end()
    o.again(giveUpAt)
  }
  const leave = now < giveUpAt ? o.directory.whenDecided(o.revision, decided) : undefined
  if (leave === undefined) {
    if (o.hold?.() !== true) sink.fail(error, 'no')
    return
  }
  const fail = (reason: ServeError): void => {
    leave()
    end()
    sink.fail(reason, 'no')
  }
  const stopTimer = clock.setTimer(giveUpAt - now, () => fail(error))
  const onAbort = (): void => fail(signalError(signal))
  signal.addEventListener('abort', onAbort, { once: true })
  function end(): void {
    stopTimer()
    signal.removeEventListener('abort', onAbort)
  }
}

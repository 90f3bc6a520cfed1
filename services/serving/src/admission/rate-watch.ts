import type { Clock } from '@tutti/chassis'
import type { Admission } from './admission.ts'
import type { AdmissionTicket } from './admission-ticket.ts'

export interface RateWatchOptions {
  readonly clock: Clock
  readonly admission: Admission
  /** Least rate at which a client must send its request, or take its answer, while the call waits for it; 0 is no watch. */
  readonly bytesPerSecond: number
  /** Least time over which a client's rate is measured. */
  readonly windowMs: number
}

/** A look at a ticket. */
interface Seen {
  /** The wait that it is about. */
  readonly waits: number
  readonly atMs: number
  readonly movedBytes: number
}

/**
 * Ends calls whose clients send a request, or take an answer, more slowly than `bytesPerSecond`, while more than half of the
 * bytes of the admission are in use. Calls that do not wait for their client go on. One timer serves all calls.
 *
 * @returns a function that ends the watch.
 */
export function watchRates({ clock, admission, bytesPerSecond, windowMs }: RateWatchOptions) {
  if (bytesPerSecond === 0) return () => {}
  let seen = new WeakMap<AdmissionTicket, Seen>()
  const check = (ticket: AdmissionTicket, atMs: number): void => {
    const { call, waits, waitingBytes } = ticket
    // It may have ended with another ticket of its call.
    if (call === undefined || waitingBytes === 0) return
    const { movedBytes } = call
    const last = seen.get(ticket)
    const elapsedMs = atMs - (last?.atMs ?? atMs)
    if (last !== undefined && last.waits === waits) {
      if (elapsedMs < windowMs) return
      const least = (elapsedMs / 1000) * bytesPerSecond
      if (movedBytes - last.movedBytes < least) return admission.end(ticket, 'rate')
    }
    seen.set(ticket, { waits, atMs, movedBytes })
  }
  const checkAll = (): void => {
    const now = clock.now()
    // There was room for those that were slow before.
    if (2 * admission.bytes <= admission.bounds.maxBytes) seen = new WeakMap()
    else {
      // To end one may end others of the line.
      const waiting = [...admission.line]
      for (const ticket of waiting) check(ticket, now)
    }
    stopTimer = clock.setTimer(windowMs / 2, checkAll)
  }
  let stopTimer = clock.setTimer(windowMs / 2, checkAll)
  return () => stopTimer()
}

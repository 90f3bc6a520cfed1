import { ServeError } from '@tutti/errors'
import { fromWireError, type Message, toWireError } from '@tutti/protocol'
import { executedBefore } from '@tutti/tensor'
import type { Departure } from '../members/membership.ts'
import type { CalledReplica, CallOptions, OpenCall } from './call.ts'
import { MAYBE_EXECUTED, maybeExecuted, notExecuted } from './call-errors.ts'
import { TOMBSTONES } from './recent-keys.ts'
import type { ResponseArrivals } from './response-arrivals.ts'
import { throwAway } from './throw-away.ts'

/** The calling side, as its faults see it. */
export interface CallerFaultsOptions extends CallOptions {
  readonly calls: ReadonlyMap<number, OpenCall>
  readonly replicas: Map<string, CalledReplica>
  readonly arrivals: ResponseArrivals
  /** True for the number of a call that was made here. */
  readonly wasOurs: (call: number) => boolean
  /** Makes the offer of a call again. */
  readonly offer: (now: number, call: OpenCall) => void
  readonly remove: (now: number, call: OpenCall) => void
}

const GONE = 'is gone'

/** Ends calls of the calling side before their final response: they are cancelled, refused or lost, or they do not move. */
export class CallerFaults {
  readonly #o: CallerFaultsOptions
  /** Calls that failed while the broker was away, and where: the replicas are told when it is back. */
  readonly #untold = new Map<number, string>()

  constructor(o: CallerFaultsOptions) {
    this.#o = o
  }

  /** Takes a message of the call's replica that is neither a response nor credits; what only a caller says changes nothing. */
  on(now: number, call: OpenCall, message: Message): void {
    if (message.type === 'refused') this.fail(now, call, fromWireError(message.error))
    if (message.type !== 'resend' || !call.transfers.includes(message.transfer)) return
    this.#o.outgoing.resend(call.to, message.transfer, message.offset)
  }

  /** An answer to a call that has ended: its replica should know. Numbers that were never ours are a stranger's. */
  onUnknown(message: Message): void {
    if (message.type !== 'response' && message.type !== 'accepted') return
    if (message.type === 'response') throwAway(this.#o.incoming, message)
    if (!this.#o.wasOurs(message.call)) return
    const error = toWireError(new ServeError('CANCELLED', 'the call has ended'))
    this.#o.send(message.from, { type: 'cancel', call: message.call, error })
  }

  /** Ends the call with `error` at once, and tells the replica. */
  cancel(now: number, number: number, error: ServeError): void {
    const call = this.#o.calls.get(number)
    if (call !== undefined) this.#giveUp(now, call, error)
  }

  /** Ends every call with `error`, and tells the replicas. */
  cancelAll(now: number, error: ServeError): void {
    for (const call of this.#o.calls.values()) this.#giveUp(now, call, error)
  }

  /** There is no responder for the offer. @returns the replica, if it is the offer of a call that waits for its answer. */
  noResponder(now: number, number: number): string | undefined {
    const call = this.#o.calls.get(number)
    if (call === undefined || call.isAccepted) return undefined
    // After a repeated offer it is unknown whether the first arrived.
    if (call.offers === 1) {
      this.fail(now, call, notExecuted(call.to, call.envelope, 'does not listen'))
    }
    return call.to
  }

  /**
   * The replica is dead or has left: nothing more comes from it. One that has left takes nothing after its farewell, and has
   * said before what it took: an offer that met it too late can go elsewhere.
   *
   * @returns calls that are still open, for `lost`: the broker may be about to say that their offer had no responder, and
   * then they can go elsewhere too.
   */
  memberGone(now: number, member: string, how: Departure): readonly number[] {
    const undecided: number[] = []
    for (const call of this.#o.calls.values()) {
      if (call.to !== member) continue
      const isOfferOpen = !call.isAccepted && call.offers === 1 && call.unsent.size === 0
      if (!isOfferOpen) this.#giveUp(now, call, lost(call, GONE))
      else if (how === 'dead') undecided.push(call.call)
      else
        this.#giveUp(now, call, notExecuted(member, call.envelope, 'left before it took the call'))
    }
    return undecided
  }

  /** Ends those of the calls that have not ended: their replica is gone. */
  lost(now: number, numbers: readonly number[]): void {
    for (const number of numbers) {
      const call = this.#o.calls.get(number)
      if (call !== undefined) this.#giveUp(now, call, lost(call, GONE))
    }
  }

  /**
   * Makes open offers once more, as what was sent to the member last may be lost; so it is known of them, too, that they may
   * have arrived. All else comes to light by itself.
   */
  pathBroken(now: number, member: string): void {
    for (const call of this.#o.calls.values()) {
      if (call.to === member && !call.isAccepted && call.offers === 1) this.#o.offer(now, call)
    }
  }

  /** The broker is away: what was in flight over it has failed. @param isReached - the members that no broker is needed for. */
  disconnected(now: number, isReached?: (member: string) => boolean): void {
    for (const call of this.#o.calls.values()) {
      if (isReached?.(call.to) === true) continue
      if (this.#untold.size < TOMBSTONES) this.#untold.set(call.call, call.to)
      this.fail(now, call, lost(call, 'cannot be reached: the broker is away'))
    }
  }

  /** The broker is back: the replicas stop working for calls that have failed meanwhile. */
  reconnected(): void {
    const error = toWireError(new ServeError('CANCELLED', 'the broker was away'))
    for (const [call, to] of this.#untold) this.#o.send(to, { type: 'cancel', call, error })
    this.#untold.clear()
  }

  /** Tells the replicas, or those that are reached now, which calls are done, where no offer has said so. */
  sayDone(isReached?: (member: string) => boolean): void {
    for (const [to, replica] of this.#o.replicas) {
      if (isReached?.(to) === false) continue
      for (const call of replica.done.splice(0)) this.#o.send(to, { type: 'done', call })
      if (replica.calls === 0) this.#o.replicas.delete(to)
    }
  }

  /** Looks after calls that do not move. */
  tick(now: number): void {
    const { calls, arrivals, settings } = this.#o
    const progress = this.#progress()
    for (const call of calls.values()) {
      const problem = this.#problem(now, call, progress.get(call.to) ?? now)
      const arrival = this.#arrivalProblem(now, call)
      if (problem !== undefined) this.#giveUp(now, call, problem)
      else if (arrival !== undefined) this.reject(now, call, arrival)
      else if (call.isAccepted && now - call.heardAt >= settings.silenceMs) {
        // Says again what the replica should know; one that has forgotten the call answers so.
        call.heardAt = now
        arrivals.grant(call)
      }
    }
  }

  /** When each replica last let something be sent: tensors to one replica wait for one another. */
  #progress(): Map<string, number> {
    const progress = new Map<string, number>()
    for (const { to, progressAt } of this.#o.calls.values()) {
      progress.set(to, Math.max(progressAt, progress.get(to) ?? progressAt))
    }
    return progress
  }

  #problem(now: number, call: OpenCall, progressAt: number): ServeError | undefined {
    const { waitMs, silenceMs } = this.#o.settings
    if (!call.isAccepted && now - call.offeredAt >= silenceMs) {
      return lost(call, `did not answer an offer for ${silenceMs} ms`)
    }
    if (call.isAccepted && call.unsent.size > 0 && now - progressAt >= waitMs) {
      const why = `let nothing more be sent for ${waitMs} ms`
      return notExecuted(call.to, call.envelope, why)
    }
    return undefined
  }

  /** Why a call cannot go on that waits too long for memory for a response. */
  #arrivalProblem(now: number, call: OpenCall): ServeError | undefined {
    const { waitMs } = this.#o.settings
    const { to, envelope, nextToOpen, waitingSince } = call
    if (waitingSince !== undefined && now - waitingSince >= waitMs) {
      const why = `sent response ${nextToOpen}, for which there was no free memory in ${waitMs} ms`
      return maybeExecuted(to, envelope, why)
    }
    return undefined
  }

  #giveUp(now: number, call: OpenCall, error: ServeError): void {
    if (call.hasEnded) return
    this.#o.send(call.to, { type: 'cancel', call: call.call, error: toWireError(error) })
    this.fail(now, call, error)
  }

  /** Ends a call whose answer cannot be taken, with an error of its own, because the replica has executed. */
  reject(now: number, call: OpenCall, error: ServeError): void {
    if (call.hasEnded) return
    this.#o.send(call.to, { type: 'cancel', call: call.call, error: toWireError(error) })
    this.#o.remove(now, call)
    call.listener.sink.fail(error, executedBefore(error))
  }

  /** Ends the call with an error that the replica knows, or cannot be told. */
  fail(now: number, call: OpenCall, error: ServeError): void {
    if (call.hasEnded) return
    this.#o.remove(now, call)
    call.listener.sink.fail(error, MAYBE_EXECUTED.has(error.reason) ? 'maybe' : 'no')
  }
}

function lost(call: OpenCall, why: string): ServeError {
  const make = call.unsent.size === 0 ? maybeExecuted : notExecuted
  return make(call.to, call.envelope, why)
}

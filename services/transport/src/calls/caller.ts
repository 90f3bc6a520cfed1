import { ServeError } from '@tutti/errors'
import {
  type Envelope,
  fromWireError,
  type PeerMessage,
  type TensorPart,
  toWireError,
} from '@tutti/protocol'
import type { Departure } from '../members/membership.ts'
import type { PeerSettings } from '../peer-settings.ts'
import { ByteBudget } from '../transfers/byte-budget.ts'
import type { IncomingTransfers } from '../transfers/incoming-transfers.ts'
import type { OutgoingTransfers } from '../transfers/outgoing-transfers.ts'
import { type InlineLimits, splitTensors } from '../transfers/split-tensors.ts'
import { callDetails, maybeExecuted, notExecuted } from './call-place.ts'
import {
  type CallReceiver,
  mayHaveExecuted,
  type OpenCall,
  type ResponseMessage,
} from './open-call.ts'
import type { PeerSend } from './peer-send.ts'
import { ResponseArrivals } from './response-arrivals.ts'
import { errorResponse } from './taken-call.ts'

/** What the calls of one peer share. */
export interface CallerOptions {
  readonly settings: PeerSettings
  readonly send: PeerSend
  readonly incoming: IncomingTransfers
  readonly outgoing: OutgoingTransfers
  readonly inlineLimits: () => InlineLimits
}

const GONE = 'is gone'

type CreditMessage = Extract<PeerMessage, { type: 'accepted' | 'credit' }>

/**
 * The calling side: offers envelopes, sends their tensors under the replica's credits, puts the responses in order. Without
 * clock and I/O: time comes as `now`, messages go through `send`. Every call ends once: with its final response, or by `failed`.
 */
export class Caller {
  readonly #o: CallerOptions
  readonly #budget: ByteBudget
  readonly #arrivals: ResponseArrivals
  readonly #calls = new Map<number, OpenCall>()
  /** Calls that failed while the broker was away, and where: the replicas are told when it is back. */
  readonly #untold = new Map<number, string>()
  #next = 1

  constructor(o: CallerOptions) {
    this.#o = o
    const { receiveBytes, receiveBytesPerSender } = o.settings
    this.#budget = new ByteBudget(receiveBytes, receiveBytesPerSender)
    this.#arrivals = new ResponseArrivals({
      settings: o.settings,
      send: o.send,
      incoming: o.incoming,
      budget: this.#budget,
      finish: (now, call) => {
        this.#o.send(call.to, { type: 'done', call: call.call })
        this.#remove(now, call)
      },
      fail: (now, call, error) => this.#reject(now, call, error),
    })
  }

  /** Calls that have not ended. */
  get size(): number {
    return this.#calls.size
  }

  /** Bytes of responses that are arriving or that no reader has taken yet. */
  get reservedBytes(): number {
    return this.#budget.inUse
  }

  get freeBytes(): number {
    return this.#budget.free
  }

  /**
   * Offers the envelope to a replica.
   *
   * @param tensors - bytes of `envelope.inputs`; viewed until the call ends.
   * @returns the call's number, for `cancel` and `drop`.
   * @throws ServeError OVERLOADED, MESSAGE_TOO_LARGE, MALFORMED_MESSAGE; then nothing was sent.
   */
  open(
    now: number,
    to: string,
    envelope: Envelope,
    tensors: readonly Uint8Array[],
    receiver: CallReceiver,
  ): number {
    this.#admit(to, envelope, tensors)
    const number = this.#next++
    const unsent = new Set<number>()
    const parts = splitTensors(tensors, this.#o.inlineLimits(), (bytes) => {
      const transfer = this.#o.outgoing.open(to, bytes, (at, isWhollySent) => {
        call.progressAt = at
        if (isWhollySent) unsent.delete(transfer)
      })
      unsent.add(transfer)
      return transfer
    })
    const granted = this.#o.settings.responseCredits
    const call = newCall({ now, number, to, envelope, parts, unsent, receiver, granted })
    try {
      this.#offer(now, call)
    } catch (error) {
      for (const transfer of call.transfers) this.#o.outgoing.drop(transfer)
      throw ServeError.from(error).withDetails(callDetails(to, envelope))
    }
    this.#calls.set(number, call)
    return number
  }

  /** Takes what a replica says. What does not fit one of our calls changes nothing. */
  on(now: number, message: PeerMessage): void {
    const call = this.#calls.get(message.call)
    if (call === undefined) {
      this.#onUnknown(message)
      return
    }
    if (call.to !== message.from) return
    call.heardAt = now
    switch (message.type) {
      case 'accepted':
      case 'credit':
        this.#onCredits(now, call, message)
        return
      case 'resend':
        this.#onResend(call, message)
        return
      case 'refused':
        this.#fail(now, call, fromWireError(message.error))
        return
      case 'response':
        this.#onResponse(now, call, message)
        return
      case 'offer':
      case 'response-credit':
      case 'cancel':
      case 'done':
        // What a caller says; a replica has no business with it.
        return
    }
  }

  /** The reader wants no more responses; the replica goes on unharmed. */
  drop(now: number, number: number): void {
    const call = this.#calls.get(number)
    if (call !== undefined) this.#arrivals.drop(now, call)
  }

  /** Ends the call with `error` at once, and tells the replica. */
  cancel(now: number, number: number, error: ServeError): void {
    const call = this.#calls.get(number)
    if (call !== undefined) this.#giveUp(now, call, error)
  }

  /** Ends every call with `error`, and tells the replicas. */
  cancelAll(now: number, error: ServeError): void {
    for (const call of this.#calls.values()) this.#giveUp(now, call, error)
  }

  /** Nobody listens for the offer. @returns the replica, if it is the offer of a call that waits for its answer. */
  noResponder(now: number, number: number): string | undefined {
    const call = this.#calls.get(number)
    if (call === undefined || call.isAccepted) return undefined
    // After a repeated offer nobody knows what became of the first.
    if (call.offers === 1) {
      this.#fail(now, call, notExecuted(call.to, call.envelope, 'does not listen'))
    }
    return call.to
  }

  /**
   * The replica is dead or has left: nothing more comes from it. One that has left takes nothing after its farewell, and has
   * said before what it took: an offer that met it too late can go elsewhere.
   *
   * @returns calls that are still open, for `lost`: the broker may be about to say that nobody listened for their offer, and
   * then they can go elsewhere too.
   */
  peerGone(now: number, peer: string, how: Departure): readonly number[] {
    const undecided: number[] = []
    for (const call of this.#calls.values()) {
      if (call.to !== peer) continue
      const isOfferOpen = !call.isAccepted && call.offers === 1 && mayHaveExecuted(call)
      if (!isOfferOpen) this.#giveUp(now, call, this.#lost(call, GONE))
      else if (how === 'dead') undecided.push(call.call)
      else this.#giveUp(now, call, notExecuted(peer, call.envelope, 'left before it took the call'))
    }
    return undecided
  }

  /** Ends those of the calls that have not ended: their replica is gone. */
  lost(now: number, numbers: readonly number[]): void {
    for (const number of numbers) {
      const call = this.#calls.get(number)
      if (call !== undefined) this.#giveUp(now, call, this.#lost(call, GONE))
    }
  }

  /** The broker is away: everything in flight over it has failed. */
  disconnected(now: number): void {
    for (const call of this.#calls.values()) {
      if (this.#untold.size < this.#o.settings.tombstones) this.#untold.set(call.call, call.to)
      this.#fail(now, call, this.#lost(call, 'cannot be reached: the broker is away'))
    }
  }

  /** The broker is back: the replicas stop working for calls that have failed meanwhile. */
  reconnected(): void {
    const error = toWireError(new ServeError('CANCELLED', 'the broker was away'))
    for (const [call, to] of this.#untold) this.#o.send(to, { type: 'cancel', call, error })
    this.#untold.clear()
  }

  /** Looks after calls that do not move. */
  tick(now: number): void {
    const progress = this.#progress()
    for (const call of this.#calls.values()) {
      const problem = this.#problem(now, call, progress.get(call.to) ?? now)
      const arrival = this.#arrivals.problem(now, call)
      if (problem !== undefined) this.#giveUp(now, call, problem)
      else if (arrival !== undefined) this.#reject(now, call, arrival)
      else if (!call.isAccepted) this.#repeatOffer(now, call)
      else if (now - call.heardAt >= this.#o.settings.probeMs) this.#probe(now, call)
    }
  }

  #admit(to: string, envelope: Envelope, tensors: readonly Uint8Array[]): void {
    const { maxOpenCalls, maxTensorBytes } = this.#o.settings
    const details = callDetails(to, envelope)
    if (this.#calls.size >= maxOpenCalls) {
      throw new ServeError('OVERLOADED', `${maxOpenCalls} calls to replicas are open`, { details })
    }
    for (const [i, tensor] of tensors.entries()) {
      if (tensor.byteLength <= maxTensorBytes) continue
      const name = envelope.inputs[i]?.name ?? ''
      throw new ServeError(
        'MESSAGE_TOO_LARGE',
        `input "${name}": ${tensor.byteLength} bytes on the way to replica '${to}', want at most ${maxTensorBytes}`,
        { details: { ...details, field: name } },
      )
    }
  }

  #offer(now: number, call: OpenCall): void {
    const { envelope, parts } = call
    const left = envelope.remainingMs
    call.offers += 1
    call.offeredAt = now
    this.#o.send(call.to, {
      type: 'offer',
      call: call.call,
      envelope:
        left === undefined ? envelope : { ...envelope, remainingMs: left - (now - call.openedAt) },
      parts,
      responseCredits: this.#o.settings.responseCredits,
    })
  }

  /** An answer to a call that has ended: its replica should know. Numbers that were never ours are a stranger's. */
  #onUnknown(message: PeerMessage): void {
    if (message.type !== 'response' && message.type !== 'accepted') return
    if (message.call >= this.#next || message.call === 0) return
    const error = toWireError(new ServeError('CANCELLED', 'the call has ended'))
    this.#o.send(message.from, { type: 'cancel', call: message.call, error })
  }

  #onCredits(now: number, call: OpenCall, message: CreditMessage): void {
    if (message.type === 'accepted' && !call.isAccepted) {
      call.isAccepted = true
      call.progressAt = now
    }
    if (message.credits.length === 0) return
    const ours = message.credits.filter(({ transfer }) => call.transfers.includes(transfer))
    if (this.#o.outgoing.credit(call.to, ours)) call.progressAt = now
  }

  #onResend(call: OpenCall, message: Extract<PeerMessage, { type: 'resend' }>): void {
    if (!call.transfers.includes(message.transfer)) return
    this.#o.outgoing.resend(call.to, message.transfer, message.offset)
  }

  #onResponse(now: number, call: OpenCall, message: ResponseMessage): void {
    call.isAccepted = true
    // The replica has forgotten the call, so what it said before may never come.
    if (message.error?.reason === 'STEP_LOST') this.#fail(now, call, fromWireError(message.error))
    else this.#arrivals.add(now, call, message)
  }

  /** When each replica last let something be sent: tensors to one replica wait for one another. */
  #progress(): Map<string, number> {
    const progress = new Map<string, number>()
    for (const { to, progressAt } of this.#calls.values()) {
      progress.set(to, Math.max(progressAt, progress.get(to) ?? progressAt))
    }
    return progress
  }

  #problem(now: number, call: OpenCall, progressAt: number): ServeError | undefined {
    const { creditWaitMs, acceptMs } = this.#o.settings
    if (!call.isAccepted && call.offers > 1 && now - call.offeredAt >= acceptMs) {
      return this.#lost(call, `did not answer an offer, made twice, for ${acceptMs} ms`)
    }
    if (call.isAccepted && call.unsent.size > 0 && now - progressAt >= creditWaitMs) {
      const why = `let nothing more be sent for ${creditWaitMs} ms`
      return notExecuted(call.to, call.envelope, why)
    }
    return undefined
  }

  /** An offer or its answer may have been lost; the replica knows a repeated one. */
  #repeatOffer(now: number, call: OpenCall): void {
    if (now - call.offeredAt >= this.#o.settings.acceptMs) this.#offer(now, call)
  }

  /** Says again what the replica should know; one that has forgotten the call answers so. */
  #probe(now: number, call: OpenCall): void {
    call.heardAt = now
    this.#arrivals.grant(call)
  }

  #lost(call: OpenCall, why: string): ServeError {
    const make = mayHaveExecuted(call) ? maybeExecuted : notExecuted
    return make(call.to, call.envelope, why)
  }

  #giveUp(now: number, call: OpenCall, error: ServeError): void {
    if (call.hasEnded) return
    this.#o.send(call.to, { type: 'cancel', call: call.call, error: toWireError(error) })
    this.#fail(now, call, error)
  }

  /** What the replica has answered cannot be taken: an error of its own, because it has executed. */
  #reject(now: number, call: OpenCall, error: ServeError): void {
    if (call.hasEnded) return
    const index = call.nextToDeliver
    this.#o.send(call.to, { type: 'cancel', call: call.call, error: toWireError(error) })
    this.#remove(now, call)
    call.receiver.response(errorResponse(index, error), () => {})
  }

  #fail(now: number, call: OpenCall, error: ServeError): void {
    if (call.hasEnded) return
    this.#remove(now, call)
    call.receiver.failed(error)
  }

  #remove(now: number, call: OpenCall): void {
    call.hasEnded = true
    this.#calls.delete(call.call)
    for (const transfer of call.transfers) this.#o.outgoing.drop(transfer)
    this.#arrivals.forget(now, call)
  }
}

function newCall(o: {
  readonly now: number
  readonly number: number
  readonly to: string
  readonly envelope: Envelope
  readonly parts: readonly TensorPart[]
  readonly unsent: Set<number>
  readonly receiver: CallReceiver
  readonly granted: number
}): OpenCall {
  return {
    call: o.number,
    to: o.to,
    envelope: o.envelope,
    parts: o.parts,
    receiver: o.receiver,
    transfers: [...o.unsent],
    unsent: o.unsent,
    openedAt: o.now,
    offeredAt: o.now,
    offers: 0,
    isAccepted: false,
    progressAt: o.now,
    heardAt: o.now,
    responses: new Map(),
    nextToOpen: 0,
    nextToDeliver: 0,
    finalIndex: undefined,
    taken: 0,
    takenBytes: 0,
    granted: o.granted,
    waitingSince: undefined,
    gapSince: undefined,
    isDropped: false,
    hasEnded: false,
  }
}

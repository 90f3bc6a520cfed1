import { ServeError } from '@tutti/errors'
import { DONE_LIMIT, type Envelope, fromWireError, type Message } from '@tutti/protocol'
import { ByteBudget } from '../transfers/byte-budget.ts'
import { mostUnaskedBytes } from '../transfers/incoming-transfers.ts'
import { splitTensors, unaskedBytes } from '../transfers/split-tensors.ts'
import type { CalledReplica, CallListener, CallOptions, OpenCall, ResponseMessage } from './call.ts'
import { callDetails, callError, tooLargeInput } from './call-errors.ts'
import { CallerFaults } from './caller-faults.ts'
import { ResponseArrivals } from './response-arrivals.ts'

/** Calls that a member makes at the same time. */
export const MAX_OPEN_CALLS = 8192

type CreditMessage = Extract<Message, { type: 'accepted' | 'credit' }>

/**
 * The calling side: offers envelopes, sends their tensors under the replica's credits, puts the responses in order. Without
 * clock and I/O: time comes as `now`, messages go through `send`. Every call ends once, at its sink.
 */
export class Caller {
  /** Events of calls beside their answers. */
  readonly faults: CallerFaults
  readonly #o: CallOptions
  readonly #budget: ByteBudget
  readonly #replicas = new Map<string, CalledReplica>()
  /** Bytes of responses that all replicas together may send unasked. */
  #responseBytes = 0
  readonly #arrivals: ResponseArrivals
  readonly #calls = new Map<number, OpenCall>()
  #next = 1

  constructor(o: CallOptions) {
    this.#o = o
    const { tensorBytes, tensorBytesPerMember } = o.settings
    this.#budget = new ByteBudget(tensorBytes, tensorBytesPerMember)
    this.#arrivals = new ResponseArrivals({
      ...o,
      budget: this.#budget,
      finish: (now, call) => {
        this.#sayDone(call)
        this.#remove(now, call)
      },
      fail: (now, call, error) => this.faults.reject(now, call, error),
    })
    this.faults = new CallerFaults({
      ...o,
      calls: this.#calls,
      replicas: this.#replicas,
      arrivals: this.#arrivals,
      wasOurs: (number) => number > 0 && number < this.#next,
      offer: (now, call) => this.#offer(now, call),
      remove: (now, call) => this.#remove(now, call),
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

  /**
   * Offers the envelope to a replica.
   *
   * @param tensors - bytes of `envelope.inputs`; viewed until the call ends.
   * @returns the call's number, for `cancel` of `faults`.
   * @throws ServeError OVERLOADED, MESSAGE_TOO_LARGE, MALFORMED_MESSAGE; then nothing was sent.
   */
  open(
    now: number,
    to: string,
    envelope: Envelope,
    tensors: readonly Uint8Array[],
    listener: CallListener,
  ): number {
    this.#admit(to, envelope, tensors)
    const number = this.#next++
    const unsent = new Set<number>()
    const limits = this.#o.inlineLimits()
    const replica = this.#replica(to)
    const parts = splitTensors(tensors, limits, this.#mayGo(replica), (bytes, isUnasked) => {
      const onProgress = (at: number, isWhollySent: boolean): void => {
        call.progressAt = at
        if (isWhollySent) unsent.delete(transfer)
      }
      const { retain } = listener
      const transfer = this.#o.outgoing.open({ to, bytes, retain, isUnasked, onProgress })
      unsent.add(transfer)
      return transfer
    })
    const call: OpenCall = {
      call: number,
      to,
      replica,
      envelope,
      parts,
      listener,
      transfers: [...unsent],
      unsent,
      unaskedBytes: unaskedBytes(parts),
      responseBytes: this.#maySend(replica),
      openedAt: now,
      offeredAt: now,
      offers: 0,
      isAccepted: false,
      progressAt: now,
      heardAt: now,
      granted: this.#o.settings.responseCredits,
      responses: new Map(),
      nextToOpen: 0,
      nextToDeliver: 0,
      finalIndex: undefined,
      taken: 0,
      takenBytes: 0,
      waitingSince: undefined,
      hasEnded: false,
    }
    this.#count(call, 1)
    try {
      this.#offer(now, call)
    } catch (error) {
      this.#letGo(call)
      throw ServeError.from(error).withDetails(callDetails(to, envelope))
    }
    this.#calls.set(number, call)
    return number
  }

  /** Takes what a replica says. What does not fit one of our calls changes nothing. */
  on(now: number, message: Message): void {
    const call = this.#calls.get(message.call)
    if (call === undefined) {
      this.faults.onUnknown(message)
      return
    }
    if (call.to !== message.from) return
    call.heardAt = now
    if (message.type === 'response') this.#onResponse(now, call, message)
    else if (message.type === 'accepted' || message.type === 'credit') {
      this.#onCredits(now, call, message)
    } else this.faults.on(now, call, message)
  }

  #admit(to: string, envelope: Envelope, tensors: readonly Uint8Array[]): void {
    const most = this.#o.settings.tensorBytesPerMember
    if (this.#calls.size >= MAX_OPEN_CALLS) {
      throw callError('OVERLOADED', to, envelope, `${MAX_OPEN_CALLS} calls to replicas are open`)
    }
    for (const [i, { byteLength: bytes }] of tensors.entries()) {
      if (bytes > most) throw tooLargeInput(to, envelope, i, { bytes, most })
    }
  }

  #replica(to: string): CalledReplica {
    const replica = this.#replicas.get(to) ?? { calls: 0, sent: 0, granted: 0, done: [], takes: 0 }
    replica.takes = this.#o.unaskedBytes(to)
    this.#replicas.set(to, replica)
    return replica
  }

  /** Bytes of inputs that may go to it before it asks. */
  #mayGo({ takes, sent }: CalledReplica): number {
    return Math.min(takes, this.#o.settings.creditBytes) - sent
  }

  /** Bytes of responses that it may send before we ask: a tensor that goes whole, or none while others have it all. */
  #maySend({ granted }: CalledReplica): number {
    const { settings } = this.#o
    const left = mostUnaskedBytes(settings) - this.#responseBytes
    const isFree = settings.wholeLimitBytes <= Math.min(left, settings.creditBytes - granted)
    return isFree ? settings.wholeLimitBytes : 0
  }

  /** @param by - 1 when the call opens, -1 when it ends. */
  #count(call: OpenCall, by: 1 | -1): void {
    const { replica, responseBytes } = call
    replica.calls += by
    replica.sent += by * call.unaskedBytes
    replica.granted += by * responseBytes
    this.#responseBytes += by * responseBytes
  }

  #letGo(call: OpenCall): void {
    for (const transfer of call.transfers) this.#o.outgoing.drop(transfer)
    this.#count(call, -1)
  }

  /** The replica may forget the call, but need not at once. */
  #sayDone({ to, call, replica }: OpenCall): void {
    const { done } = replica
    if (done.length < DONE_LIMIT) done.push(call)
    else this.#o.send(to, { type: 'done', call })
  }

  #offer(now: number, call: OpenCall): void {
    const { envelope, parts, responseBytes, to, replica } = call
    const left = envelope.remainingMs
    const { done } = replica
    call.offers += 1
    call.offeredAt = now
    this.#o.send(to, {
      type: 'offer',
      call: call.call,
      envelope:
        left === undefined ? envelope : { ...envelope, remainingMs: left - (now - call.openedAt) },
      parts,
      responseCredits: this.#o.settings.responseCredits,
      ...(responseBytes > 0 && { responseBytes }),
      ...(done.length > 0 && { done }),
    })
    replica.done = []
  }

  #onCredits(now: number, call: OpenCall, message: CreditMessage): void {
    if (message.type === 'accepted' && !call.isAccepted) {
      call.isAccepted = true
      call.progressAt = now
    }
    const ours = message.credits.filter(({ transfer }) => call.transfers.includes(transfer))
    if (this.#o.outgoing.credit(call.to, ours)) call.progressAt = now
  }

  #onResponse(now: number, call: OpenCall, message: ResponseMessage): void {
    call.isAccepted = true
    // The replica has forgotten the call, so what it said before may never come.
    if (message.error?.reason !== 'STEP_LOST') this.#arrivals.add(now, call, message)
    else this.faults.fail(now, call, fromWireError(message.error))
  }

  #remove(now: number, call: OpenCall): void {
    call.hasEnded = true
    call.listener.ended()
    this.#calls.delete(call.call)
    this.#letGo(call)
    this.#arrivals.forget(now, call)
  }
}

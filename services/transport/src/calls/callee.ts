import { ServeError } from '@tutti/errors'
import { fromWireError, type PeerMessage, toWireError } from '@tutti/protocol'
import type { PeerSettings } from '../peer-settings.ts'
import type { BearerResponse } from '../tensor-bearer.ts'
import type { IncomingTransfers } from '../transfers/incoming-transfers.ts'
import type { OutgoingTransfers } from '../transfers/outgoing-transfers.ts'
import type { InlineLimits } from '../transfers/split-tensors.ts'
import { Admission } from './admission.ts'
import { Answers } from './answers.ts'
import { callDetails, maybeExecuted, notExecuted } from './call-place.ts'
import type { OutgoingMessage, PeerSend } from './peer-send.ts'
import { RecentKeys } from './recent-keys.ts'
import {
  type CallJob,
  callKey,
  errorResponse,
  type Offer,
  type TakenCall,
  takeCall,
} from './taken-call.ts'

/** What the calls that one peer answers share. */
export interface CalleeOptions {
  readonly self: string
  readonly settings: PeerSettings
  readonly send: PeerSend
  readonly incoming: IncomingTransfers
  readonly outgoing: OutgoingTransfers
  readonly inlineLimits: () => InlineLimits
  /** Starts an execution; its responses come by `respond`, its end by `ended`. */
  readonly execute: (job: CallJob) => void
}

/**
 * A caller asks after each of its calls that it hears nothing of. One that does not ask so many times has forgotten the call:
 * its `done` or cancel was lost with a connection. Three are well within the grace of a drain, which waits for such calls.
 */
const FORGOTTEN_PROBES = 3

/**
 * The answering side: admits offers, gathers their inputs, has them executed once and sends the responses under the caller's
 * credits. Without clock and I/O: time comes as `now`, messages go through `send`.
 */
export class Callee {
  readonly #o: CalleeOptions
  readonly #admission: Admission
  readonly #answers: Answers
  readonly #calls = new Map<string, TakenCall>()
  /** Executions that go on, and the bytes that their inputs have reserved; also of calls that are gone. */
  readonly #running = new Map<string, TakenCall>()
  /** Calls that were answered or cancelled. */
  readonly #finished: RecentKeys
  /** Calls that were cancelled before they were offered: nothing of them was executed. */
  readonly #unwanted: RecentKeys
  /** What is said when the broker is back, of calls that failed while it was away. Not the calls: they hold their inputs. */
  #untold: { readonly to: string; readonly message: OutgoingMessage }[] = []

  constructor(o: CalleeOptions) {
    this.#o = o
    const { self, settings, incoming } = o
    const { tombstones, tombstoneMs } = settings
    this.#answers = new Answers(o)
    this.#admission = new Admission({
      self,
      settings,
      isExpected: (from, transfer) => incoming.has(from, transfer),
      heldBytes: () => this.#answers.heldBytes,
    })
    this.#finished = new RecentKeys(tombstones, tombstoneMs)
    this.#unwanted = new RecentKeys(tombstones, tombstoneMs)
  }

  /** Calls that are accepted and not done. */
  get size(): number {
    return this.#calls.size
  }

  /** Executions that have not ended, of calls that are gone too. */
  get running(): number {
    return this.#running.size
  }

  get reservedBytes(): number {
    return this.#admission.reservedBytes
  }

  get freeBytes(): number {
    return this.#admission.freeBytes
  }

  get freeSlots(): number {
    return this.#admission.freeSlots
  }

  get heldBytes(): number {
    return this.#answers.heldBytes
  }

  /** Takes no new work from now on; questions are answered. */
  drain(): void {
    this.#admission.drain()
  }

  /** Takes what a caller says. */
  on(now: number, message: PeerMessage): void {
    if (message.type === 'offer') {
      this.#offered(now, message)
      return
    }
    const key = callKey(message.from, message.call)
    const call = this.#calls.get(key)
    if (call === undefined) this.#onUnknown(now, key, message)
    else this.#onCall(now, call, message)
  }

  respond(now: number, key: string, response: BearerResponse): void {
    const call = this.#calls.get(key)
    if (call !== undefined) this.#answers.add(now, call, response)
  }

  /** As ResponseSink's, for the call's execution: undefined if a further response would go out at once, or be dropped. */
  room(key: string): Promise<void> | undefined {
    const call = this.#calls.get(key)
    return call === undefined ? undefined : this.#answers.room(call)
  }

  /** The execution has ended. One without a final response is an error of its own. */
  ended(now: number, key: string, error?: unknown): void {
    const running = this.#running.get(key)
    const call = this.#calls.get(key)
    if (running !== undefined) {
      this.#running.delete(key)
      this.#admission.giveBytes(running)
      // A call has its slot until it is done and its execution has ended.
      if (call !== running) this.#admission.giveSlot(running)
    }
    if (call === undefined || call.hasFinal) return
    const details = callDetails(this.#o.self, call.envelope)
    const text = `bug: replica '${this.#o.self}' ended without a final response`
    const problem =
      error === undefined
        ? new ServeError('INTERNAL', text, { details })
        : ServeError.from(error).withDetails(details)
    const index = call.sent + call.queue.length
    this.#answers.add(now, call, errorResponse(index, problem))
  }

  /** The caller is dead or has left: its calls are aborted and freed. */
  callerGone(now: number, from: string, why: string): void {
    for (const call of this.#calls.values()) {
      if (call.from !== from) continue
      this.#end(now, call, new ServeError('CANCELLED', `caller '${from}' ${why}`))
    }
  }

  /** The broker is away: everything in flight over it has failed. */
  disconnected(now: number): void {
    const why = 'lost its connection to the broker'
    for (const call of this.#calls.values()) {
      if (this.#untold.length < this.#o.settings.tombstones) {
        this.#untold.push({ to: call.from, message: this.#lastWord(call, why) })
      }
      this.#end(now, call, maybeExecuted(this.#o.self, call.envelope, why))
    }
  }

  /** The broker is back: callers that were not cut off learn what became of their calls. */
  reconnected(): void {
    for (const { to, message } of this.#untold) this.#o.send(to, message)
    this.#untold = []
  }

  #lastWord({ call, envelope, missing }: TakenCall, why: string): OutgoingMessage {
    const { self } = this.#o
    if (missing === 0) return lostMessage(call, maybeExecuted(self, envelope, why))
    return { type: 'refused', call, error: toWireError(notExecuted(self, envelope, why)) }
  }

  /** Looks after calls whose time is over or that do not move. */
  tick(now: number): void {
    this.#finished.tick(now)
    this.#unwanted.tick(now)
    for (const call of this.#calls.values()) {
      const { remainingMs } = call.envelope
      if (remainingMs !== undefined && now - call.arrivedAt >= remainingMs) this.#expire(now, call)
      const { answerHoldMs, probeMs } = this.#o.settings
      const isCallersTurn = call.isFinalSent || call.queue.length > 0
      const forgottenMs = FORGOTTEN_PROBES * probeMs
      if (call.missing === 0 && idleMs(now, call, call.heardAt) >= forgottenMs) {
        this.#giveUp(now, call, `said nothing for ${forgottenMs} ms`)
      } else if (isCallersTurn && idleMs(now, call, call.takenAt) >= answerHoldMs) {
        this.#giveUp(now, call, `took nothing for ${answerHoldMs} ms`)
      }
    }
  }

  #giveUp(now: number, call: TakenCall, text: string): void {
    const why = `caller '${call.from}' ${text}`
    this.#sayLost(call.from, call.call, maybeExecuted(this.#o.self, call.envelope, why))
    this.#end(now, call, new ServeError('CANCELLED', why))
  }

  #offered(now: number, offer: Offer): void {
    const { from, call } = offer
    const key = callKey(from, call)
    const known = this.#calls.get(key)
    if (known !== undefined) {
      known.heardAt = now
      this.#o.send(from, { type: 'accepted', call, credits: this.#o.incoming.credits(from, call) })
      return
    }
    if (this.#finished.has(key)) {
      this.#sayLost(from, call, maybeExecuted(this.#o.self, offer.envelope, 'has ended this call'))
      return
    }
    if (this.#unwanted.has(key)) {
      // Who cancelled it does not listen any more; if a stranger did, the caller can go elsewhere.
      const why = 'was told to cancel the call'
      this.#refuse(from, call, notExecuted(this.#o.self, offer.envelope, why))
      return
    }
    const problem = this.#admission.take(offer, this.#running.has(key))
    if (problem === undefined) this.#accept(now, offer)
    else this.#refuse(from, call, problem)
  }

  #accept(now: number, offer: Offer): void {
    const { from, call } = offer
    const taken = takeCall(now, offer)
    this.#calls.set(taken.key, taken)
    const credits =
      taken.missing === 0 ? [] : this.#o.incoming.open(now, this.#announce(taken, offer))
    this.#o.send(from, { type: 'accepted', call, credits })
    if (taken.missing === 0) this.#start(now, taken)
  }

  #announce(call: TakenCall, offer: Offer): Parameters<IncomingTransfers['open']>[1] {
    return offer.parts.flatMap((part, i) => {
      if (part.kind === 'inline' || part.size === 0) return []
      return {
        from: call.from,
        call: call.call,
        transfer: part.transfer,
        size: part.size,
        onArrived: (now: number, bytes: Uint8Array) => {
          call.inputs[i] = bytes
          call.missing -= 1
          if (call.missing === 0) this.#start(now, call)
        },
        onStalled: (now: number) => {
          const why = `got nothing of transfer ${part.transfer} for ${this.#o.settings.stallMs} ms, twice`
          this.#forgetUnexecuted(now, call, notExecuted(this.#o.self, call.envelope, why))
        },
      }
    })
  }

  #start(now: number, call: TakenCall): void {
    const { envelope, key, from, abort } = call
    const left = envelope.remainingMs
    const remaining = left === undefined ? undefined : left - (now - call.arrivedAt)
    if (remaining !== undefined && remaining <= 0) {
      this.#expire(now, call)
      return
    }
    call.isRunning = true
    // While its inputs came nothing else had to be said.
    call.heardAt = now
    this.#running.set(key, call)
    const inputs = call.inputs.map((input) => input ?? new Uint8Array())
    this.#o.execute({
      key,
      from,
      inputs,
      signal: abort.signal,
      envelope: remaining === undefined ? envelope : { ...envelope, remainingMs: remaining },
    })
  }

  /** The time is over: a running execution is told, one that has not begun never does. */
  #expire(now: number, call: TakenCall): void {
    if (call.abort.signal.aborted || call.hasFinal) return
    const details = callDetails(this.#o.self, call.envelope)
    const error = new ServeError('DEADLINE_EXCEEDED', "the request's time is over", { details })
    if (!call.isRunning) this.#forgetUnexecuted(now, call, error)
    else call.abort.abort(error)
  }

  #forgetUnexecuted(now: number, call: TakenCall, error: ServeError): void {
    this.#refuse(call.from, call.call, error)
    this.#end(now, call, error)
  }

  #onCall(now: number, call: TakenCall, message: Exclude<PeerMessage, { type: 'offer' }>): void {
    call.heardAt = now
    switch (message.type) {
      case 'credit':
        if (this.#o.outgoing.credit(call.from, this.#ours(call, message.credits)))
          call.takenAt = now
        return
      case 'resend':
        if (this.#ours(call, [message]).length > 0) {
          this.#o.outgoing.resend(call.from, message.transfer, message.offset)
        }
        return
      case 'response-credit':
        this.#answers.grant(now, call, message.responses)
        this.#checkLost(now, call, message.received)
        return
      case 'cancel':
        this.#end(now, call, fromWireError(message.error))
        return
      case 'done':
        this.#end(now, call, undefined)
        return
      case 'accepted':
      case 'refused':
      case 'response':
        // What a callee says; a caller has no business with it.
        return
    }
  }

  #ours<T extends { readonly transfer: number }>(
    call: TakenCall,
    said: readonly T[],
  ): readonly T[] {
    const held = [...call.held.values()].flat()
    return said.filter(({ transfer }) => held.some((one) => one.transfer === transfer))
  }

  /** A caller that still asks long after it should have had what was sent has lost some of it. */
  #checkLost(now: number, call: TakenCall, received: number): void {
    // Until the final response it may just be slow, and has all that was sent.
    if (!call.isFinalSent && received >= call.sent) return
    const { stallMs, receiveWaitMs } = this.#o.settings
    // A caller that has no room for a transfer lets nothing come for a while, and then gives up by itself.
    const quietMs = call.unsent.size > 0 ? receiveWaitMs + stallMs : 2 * stallMs
    if (now - Math.max(call.sentAt, call.takenAt) < quietMs) return
    this.#sayLost(call.from, call.call, maybeExecuted(this.#o.self, call.envelope, 'has answered'))
    this.#end(now, call, new ServeError('CANCELLED', 'the answer was lost'))
  }

  #onUnknown(now: number, key: string, message: PeerMessage): void {
    const { from, call, type } = message
    // A cancel may overtake its offer.
    if (type === 'cancel' && !this.#finished.has(key)) this.#unwanted.add(now, key)
    if (type !== 'response-credit') return
    const text = `replica '${this.#o.self}' does not know the call; it may have executed`
    this.#sayLost(
      from,
      call,
      new ServeError('STEP_LOST', text, { details: { replica: this.#o.self } }),
    )
  }

  #refuse(from: string, call: number, error: ServeError): void {
    this.#o.send(from, { type: 'refused', call, error: toWireError(error) })
  }

  #sayLost(from: string, call: number, error: ServeError): void {
    this.#o.send(from, lostMessage(call, error))
  }

  /**
   * Forgets the call but for its key; an execution that goes on keeps its slot and its bytes.
   * @param reason - undefined if the caller has its answer.
   */
  #end(now: number, call: TakenCall, reason: ServeError | undefined): void {
    this.#calls.delete(call.key)
    this.#finished.add(now, call.key)
    for (const transfer of call.inputTransfers) this.#o.incoming.drop(now, call.from, transfer)
    const wasAnswered = call.hasFinal
    this.#answers.forget(call)
    if (!call.isRunning) this.#admission.giveBytes(call)
    if (!this.#running.has(call.key)) this.#admission.giveSlot(call)
    if (!wasAnswered) call.abort.abort(reason ?? new ServeError('CANCELLED', 'said to be done'))
  }
}

/** How long nothing has happened to a call since then, or since we last sent something of it. */
function idleMs(now: number, { sentAt }: TakenCall, since: number): number {
  return now - Math.max(since, sentAt)
}

/** Ends a call at its caller, whatever it has had of it. */
function lostMessage(call: number, error: ServeError): OutgoingMessage {
  return {
    type: 'response',
    call,
    index: 0,
    final: true,
    outputs: [],
    parts: [],
    parameters: new Map(),
    error: toWireError(error),
  }
}

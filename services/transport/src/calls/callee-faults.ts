import { ServeError } from '@tutti/errors'
import { fromWireError, type Message, type TransferCredit, toWireError } from '@tutti/protocol'
import type { OutgoingMessage } from '../send-message.ts'
import type { Answers } from './answers.ts'
import type { CallOptions, Offer, TakenCall } from './call.ts'
import {
  callDetails,
  callError,
  errorResponse,
  lostMessage,
  maybeExecuted,
  notExecuted,
} from './call-errors.ts'
import { type RecentKeys, TOMBSTONES } from './recent-keys.ts'
import { throwAway } from './throw-away.ts'

/** The answering side, as its faults see it. */
export interface CalleeFaultsOptions extends CallOptions {
  readonly self: string
  readonly calls: ReadonlyMap<string, TakenCall>
  readonly answers: Answers
  /** Calls that were answered or cancelled. */
  readonly finished: RecentKeys
  /** Calls that were cancelled before they were offered. */
  readonly unwanted: RecentKeys
  /** Forgets the call. @param reason - undefined if the caller has its answer. */
  readonly end: (now: number, call: TakenCall, reason: ServeError) => void
}

/**
 * A caller asks after each of its calls that it hears nothing of. One that does not ask so many times has forgotten the call:
 * its `done` or cancel was lost with a connection. Three are well within the grace of a drain, which waits for such calls.
 */
export const FORGOTTEN_SILENCES = 3
/** For so long an answer is held for a caller that asks after it and takes nothing of it. */
export const HELD_SILENCES = 12

const LOST_BROKER = 'lost its connection to the broker'

/** Ends calls of the answering side before the caller has their answer, and says what the caller has to know of them. */
export class CalleeFaults {
  readonly #o: CalleeFaultsOptions
  /** Failures to report when the broker is back, of calls that failed while it was away. The calls themselves would hold their inputs. */
  #untold: { readonly to: string; readonly message: OutgoingMessage }[] = []

  constructor(o: CalleeFaultsOptions) {
    this.#o = o
  }

  /** Takes a message about a call other than `done`; what only a callee says changes nothing. */
  on(now: number, call: TakenCall, message: Message): void {
    const { from } = call
    const { incoming, outgoing, answers, end } = this.#o
    switch (message.type) {
      case 'offer':
        this.accept(call, incoming.credits(from, call.call))
        return
      case 'credit':
        if (outgoing.credit(from, ours(call, message.credits))) call.takenAt = now
        return
      case 'resend':
        if (ours(call, [message]).length === 0) return
        outgoing.resend(from, message.transfer, message.offset)
        return
      case 'response-credit':
        answers.grant(now, call, message.responses)
        this.#checkLost(now, call, message.received)
        return
      case 'cancel':
        end(now, call, fromWireError(message.error))
        return
      case 'accepted':
      case 'refused':
      case 'response':
      case 'done':
        return
    }
  }

  /** Takes a message about a call that is not here. */
  onUnknown(now: number, key: string, { from, call, type }: Message): void {
    // A cancel may overtake its offer.
    if (type === 'cancel' && !this.#o.finished.has(key)) this.#o.unwanted.add(now, key)
    if (type !== 'response-credit') return
    const replica = this.#o.self
    const text = `replica '${replica}' does not know the call; it may have executed`
    this.#sayLost(from, call, new ServeError('STEP_LOST', text, { details: { replica } }))
  }

  /** Answers the offer of a call that has ended, or was cancelled before. */
  over(key: string, offer: Offer): void {
    const { from, call, envelope } = offer
    const { self, finished } = this.#o
    if (finished.has(key)) {
      throwAway(this.#o.incoming, offer)
      this.#sayLost(from, call, maybeExecuted(self, envelope, 'has ended this call'))
    } else {
      // Who cancelled it no longer listens; if a stranger did, the caller can go elsewhere.
      this.reject(offer, notExecuted(self, envelope, 'was told to cancel the call'))
    }
  }

  /** The offer is not taken. */
  reject(offer: Offer, error: ServeError): void {
    throwAway(this.#o.incoming, offer)
    this.#refuse(offer.from, offer.call, error)
  }

  #refuse(from: string, call: number, error: ServeError): void {
    this.#o.send(from, { type: 'refused', call, error: toWireError(error) })
  }

  /** Tells the caller that its call is taken. */
  accept(call: TakenCall, credits: readonly TransferCredit[]): void {
    call.isSaid = true
    this.#o.send(call.from, { type: 'accepted', call: call.call, credits })
  }

  /** Tells all callers that do not know it that their calls are taken. */
  sayTaken(): void {
    for (const call of this.#o.calls.values()) {
      if (call.isSaid) continue
      call.isSaid = true
      this.#o.send(call.from, { type: 'accepted', call: call.call, credits: [] })
    }
  }

  /** The execution has failed, or ended without a final response. */
  unanswered(now: number, call: TakenCall, failure: unknown): void {
    const { self, answers } = this.#o
    const text = `bug: replica '${self}' ended without a final response`
    const error = failure === undefined ? new ServeError('INTERNAL', text) : failure
    const problem = ServeError.from(error).withDetails(callDetails(self, call.envelope))
    answers.add(now, call, errorResponse(call.sent + call.queue.length, problem))
  }

  /** A transfer of an input has stalled, twice. */
  stalled(now: number, call: TakenCall, transfer: number): void {
    const { self, settings } = this.#o
    const why = `got nothing of transfer ${transfer} for ${settings.stallMs} ms, twice`
    this.#forgetUnexecuted(now, call, notExecuted(self, call.envelope, why))
  }

  /** The time is over: a running execution is told, one that has not begun never does. */
  expire(now: number, call: TakenCall): void {
    if (call.abort.signal.aborted || call.hasFinal) return
    const text = "the request's time is over"
    const error = callError('DEADLINE_EXCEEDED', this.#o.self, call.envelope, text)
    if (!call.isRunning) this.#forgetUnexecuted(now, call, error)
    else call.abort.abort(error)
  }

  /** The caller is dead or has left: its calls are aborted and freed. */
  callerGone(now: number, from: string, why: string): void {
    for (const call of this.#o.calls.values()) {
      if (call.from !== from) continue
      this.#o.end(now, call, new ServeError('CANCELLED', `caller '${from}' ${why}`))
    }
  }

  /** The broker is away: what was in flight over it has failed. @param isReached - the members that no broker is needed for. */
  disconnected(now: number, isReached?: (member: string) => boolean): void {
    const { calls, self, end } = this.#o
    for (const call of calls.values()) {
      if (isReached?.(call.from) === true) continue
      if (this.#untold.length < TOMBSTONES) {
        this.#untold.push({ to: call.from, message: this.#lastWord(call) })
      }
      end(now, call, maybeExecuted(self, call.envelope, LOST_BROKER))
    }
  }

  /** The broker is back: callers that were not cut off learn what became of their calls. */
  reconnected(): void {
    for (const { to, message } of this.#untold) this.#o.send(to, message)
    this.#untold = []
  }

  #lastWord({ call, envelope, missing }: TakenCall): OutgoingMessage {
    const { self } = this.#o
    if (missing === 0) return lostMessage(call, maybeExecuted(self, envelope, LOST_BROKER))
    return { type: 'refused', call, error: toWireError(notExecuted(self, envelope, LOST_BROKER)) }
  }

  /** Looks after calls whose time is over or that do not move. */
  tick(now: number): void {
    this.#o.finished.tick(now)
    this.#o.unwanted.tick(now)
    this.sayTaken()
    const { silenceMs } = this.#o.settings
    const forgottenMs = FORGOTTEN_SILENCES * silenceMs
    const holdMs = HELD_SILENCES * silenceMs
    for (const call of this.#o.calls.values()) {
      const { remainingMs } = call.envelope
      if (remainingMs !== undefined && now - call.arrivedAt >= remainingMs) this.expire(now, call)
      const isCallersTurn = call.isFinalSent || call.queue.length > 0
      // Nothing has happened since then, or since we last sent something of it.
      const unheardMs = now - Math.max(call.heardAt, call.sentAt)
      const untakenMs = now - Math.max(call.takenAt, call.sentAt)
      if (call.missing === 0 && unheardMs >= forgottenMs) {
        this.#giveUp(now, call, `said nothing for ${forgottenMs} ms`)
      } else if (isCallersTurn && untakenMs >= holdMs) {
        this.#giveUp(now, call, `took nothing for ${holdMs} ms`)
      }
    }
  }

  #giveUp(now: number, call: TakenCall, text: string): void {
    const why = `caller '${call.from}' ${text}`
    this.#sayLost(call.from, call.call, maybeExecuted(this.#o.self, call.envelope, why))
    this.#o.end(now, call, new ServeError('CANCELLED', why))
  }

  #forgetUnexecuted(now: number, call: TakenCall, error: ServeError): void {
    this.#refuse(call.from, call.call, error)
    this.#o.end(now, call, error)
  }

  /** A caller that still asks long after it should have had what was sent has lost some of it. */
  #checkLost(now: number, call: TakenCall, received: number): void {
    // Until the final response it may just be slow, and has all that was sent.
    if (!call.isFinalSent && received >= call.sent) return
    const { stallMs, waitMs } = this.#o.settings
    // A caller that has no memory for a transfer lets nothing come for a while, and then gives up by itself.
    const quietMs = call.unsent.size > 0 ? waitMs + stallMs : 2 * stallMs
    if (now - Math.max(call.sentAt, call.takenAt) < quietMs) return
    this.#sayLost(call.from, call.call, maybeExecuted(this.#o.self, call.envelope, 'has answered'))
    this.#o.end(now, call, new ServeError('CANCELLED', 'the answer was lost'))
  }

  #sayLost(from: string, call: number, error: ServeError): void {
    this.#o.send(from, lostMessage(call, error))
  }
}

/** Events of transfers that the call holds. */
function ours<T extends { readonly transfer: number }>(
  call: TakenCall,
  said: readonly T[],
): readonly T[] {
  const held = [...call.held.values()].flatMap(({ transfers }) => transfers)
  return said.filter(({ transfer }) => held.some((one) => one.transfer === transfer))
}

import { ServeError } from '@tutti/errors'
import type { Message } from '@tutti/protocol'
import type { StepTimes } from '@tutti/tensor'
import type { AnnouncedTransfer } from '../transfers/incoming-transfers.ts'
import { arrivedBytes, transferBytes, unaskedBytes } from '../transfers/split-tensors.ts'
import { Admission } from './admission.ts'
import { Answers } from './answers.ts'
import type { CallJob, CallOptions, Offer, TakenCall, WireResponse } from './call.ts'
import { errorResponse } from './call-errors.ts'
import { CalleeFaults } from './callee-faults.ts'
import { RecentKeys } from './recent-keys.ts'

/** Options that the calls that one member answers share. */
export interface CalleeOptions extends CallOptions {
  readonly self: string
  /** Starts an execution; its responses come by `respond`, its end by `ended`. */
  readonly execute: (job: CallJob) => void
}

/**
 * The answering side: admits offers, gathers their inputs, has them executed once and sends the responses under the caller's
 * credits. Without clock and I/O: time comes as `now`, messages go through `send`.
 */
export class Callee {
  /** Events of calls beside their execution. */
  readonly faults: CalleeFaults
  readonly #o: CalleeOptions
  readonly admission: Admission
  readonly answers: Answers
  readonly #calls = new Map<string, TakenCall>()
  /** Executions that go on, and the bytes that their inputs have reserved; also of calls that are gone. */
  readonly #running = new Map<string, TakenCall>()
  /** Calls that were answered or cancelled. */
  readonly #finished = new RecentKeys()
  /** Calls that were cancelled before they were offered: nothing of them was executed. */
  readonly #unwanted = new RecentKeys()

  constructor(o: CalleeOptions) {
    this.#o = o
    const { incoming } = o
    this.answers = new Answers(o)
    this.admission = new Admission({
      ...o,
      isExpected: (from, transfer) => incoming.has(from, transfer),
      heldBytes: () => this.answers.heldBytes,
    })
    this.faults = new CalleeFaults({
      ...o,
      calls: this.#calls,
      answers: this.answers,
      finished: this.#finished,
      unwanted: this.#unwanted,
      end: (now, call, reason) => this.#end(now, call, reason),
    })
  }

  /** Calls that are accepted and not done. */
  get size(): number {
    return this.#calls.size
  }

  /** Executions that have not ended, of calls that are gone too. */
  get running(): number {
    return this.#running.size
  }

  /** Takes no new work from now on, and says what it has taken; questions are answered. */
  drain(): void {
    this.admission.drain()
    this.faults.sayTaken()
  }

  /** Takes what a caller says. */
  on(now: number, message: Message): void {
    const key = callKey(message.from, message.call)
    if (message.type === 'offer') this.#done(now, message)
    const call = this.#calls.get(key)
    if (call === undefined) {
      if (message.type === 'offer') this.#offered(now, key, message)
      else this.faults.onUnknown(now, key, message)
      return
    }
    call.heardAt = now
    if (message.type === 'done') this.#end(now, call, undefined)
    else this.faults.on(now, call, message)
  }

  respond(now: number, key: string, response: WireResponse): void {
    const call = this.#calls.get(key)
    if (call !== undefined) this.answers.add(now, call, response)
  }

  /** As ResponseSink's, for the call's execution: undefined if a further response would go out at once, or be dropped. */
  ready(key: string): Promise<void> | undefined {
    const call = this.#calls.get(key)
    return call === undefined ? undefined : this.answers.ready(call)
  }

  /** The execution has failed: the error is its last response. */
  failed(now: number, key: string, error: ServeError, times: StepTimes | undefined): void {
    const call = this.#calls.get(key)
    if (call === undefined || call.hasFinal) return
    const last = errorResponse(call.sent + call.queue.length, error)
    this.answers.add(now, call, times === undefined ? last : { ...last, times })
  }

  /** The execution has ended. One without a final response is an error of its own. */
  ended(now: number, key: string, error?: unknown): void {
    const running = this.#running.get(key)
    const call = this.#calls.get(key)
    if (running !== undefined) {
      this.#running.delete(key)
      this.admission.giveBytes(running)
      // A call has its slot until it is done and its execution has ended.
      if (call !== running) this.admission.giveSlot(running)
    }
    if (call !== undefined && !call.hasFinal) this.faults.unanswered(now, call, error)
  }

  /** Ends the earlier calls that an offer names as done. */
  #done(now: number, { from, done = [] }: Offer): void {
    for (const number of done) {
      const call = this.#calls.get(callKey(from, number))
      if (call !== undefined) this.#end(now, call, undefined)
    }
  }

  #offered(now: number, key: string, offer: Offer): void {
    if (this.#finished.has(key) || this.#unwanted.has(key)) {
      this.faults.over(key, offer)
      return
    }
    const problem = this.admission.take(offer, this.#running.has(key))
    if (problem === undefined) this.#accept(now, key, offer)
    else this.faults.reject(offer, problem)
  }

  /** Says so at once only if the caller waits for credits: else its response says it, or the next tick. */
  #accept(now: number, key: string, offer: Offer): void {
    const call = takeCall(now, key, offer)
    this.#calls.set(key, call)
    if (call.missing === 0) {
      this.#start(now, call)
      return
    }
    const credits = this.#o.incoming.open(now, this.#announce(call, offer))
    const isAwaited = credits.length > 0 || unaskedBytes(offer.parts) < call.reserved
    if (isAwaited) this.faults.accept(call, credits)
  }

  #announce(call: TakenCall, offer: Offer): AnnouncedTransfer[] {
    return offer.parts.flatMap((part, i) => {
      if (part.kind === 'inline' || part.size === 0) return []
      return {
        from: call.from,
        call: call.call,
        transfer: part.transfer,
        size: part.size,
        isUnasked: part.isUnasked,
        onArrived: (now: number, bytes: Uint8Array) => {
          call.inputs[i] = bytes
          call.missing -= 1
          if (call.missing === 0) this.#start(now, call)
        },
        onStalled: (now: number) => this.faults.stalled(now, call, part.transfer),
      }
    })
  }

  #start(now: number, call: TakenCall): void {
    const { envelope, key, from, abort } = call
    const left = envelope.remainingMs
    const remaining = left === undefined ? undefined : left - (now - call.arrivedAt)
    if (remaining !== undefined && remaining <= 0) return this.faults.expire(now, call)
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

  /**
   * Forgets the call but for its key; an execution that goes on keeps its slot and its bytes.
   * @param reason - undefined if the caller has its answer.
   */
  #end(now: number, call: TakenCall, reason: ServeError | undefined): void {
    this.#calls.delete(call.key)
    this.#finished.add(now, call.key)
    for (const transfer of call.inputTransfers) this.#o.incoming.drop(now, call.from, transfer)
    const wasAnswered = call.hasFinal
    this.answers.forget(call)
    if (!call.isRunning) this.admission.giveBytes(call)
    if (!this.#running.has(call.key)) this.admission.giveSlot(call)
    if (!wasAnswered) call.abort.abort(reason ?? new ServeError('CANCELLED', 'said to be done'))
  }
}

/** Names a call everywhere: the caller's id and its number. A number holds no space. */
function callKey(from: string, call: number): string {
  return `${call} ${from}`
}

/** A call as it is when its offer is accepted. */
function takeCall(now: number, key: string, offer: Offer): TakenCall {
  const { from, call, parts, envelope, responseCredits, responseBytes = 0 } = offer
  const inputs = parts.map(arrivedBytes)
  return {
    key,
    from,
    call,
    envelope,
    inputs,
    missing: inputs.filter((input) => input === undefined).length,
    inputTransfers: parts.flatMap((part) => (part.kind === 'transfer' ? [part.transfer] : [])),
    reserved: transferBytes(parts),
    arrivedAt: now,
    abort: new AbortController(),
    offeredCredits: responseCredits,
    granted: responseCredits,
    isRunning: false,
    isSaid: false,
    unaskedLeft: responseBytes,
    queue: [],
    sent: 0,
    held: new Map(),
    unsent: new Set(),
    unread: [],
    unreadBytes: 0,
    gate: undefined,
    heldBytes: 0,
    hasFinal: false,
    isFinalSent: false,
    heardAt: now,
    takenAt: now,
    sentAt: now,
  }
}

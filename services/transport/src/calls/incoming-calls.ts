import { ServeError } from '@tutti/errors'
import type { Message } from '@tutti/protocol'
import type { StepTimes } from '@tutti/tensor'
import type { OutgoingMessage } from '../send-message.ts'
import type { CallJob, MessagingContext, Offer, SentResponse } from './call.ts'
import { lostMessage, maybeExecuted, notExecuted } from './call-errors.ts'
import { CallSlots } from './call-slots.ts'
import { RecentKeys, TOMBSTONES } from './recent-keys.ts'
import { type IncomingContext, refusedMessage, TakenCall } from './taken-call.ts'
import { throwAway } from './throw-away.ts'

/** The parts of a member that taking calls needs. */
export interface IncomingCallsContext extends MessagingContext {
  readonly self: string
  /** Starts an execution; its responses come by `respond`, its end by `ended`. */
  readonly execute: (job: CallJob) => void
}

/** The end of an execution that gave no final response. */
export interface FailedExecution {
  readonly error: ServeError
  /** Times of the execution, as far as they are known. */
  readonly times?: StepTimes | undefined
}

/**
 * The calls that others make of a member: admits offers, each once, and knows which are taken and which still execute. Without
 * clock and I/O: time comes as `now`, messages go through `send`.
 */
export class IncomingCalls {
  readonly slots: CallSlots
  readonly #context: IncomingContext
  readonly #calls = new Map<string, TakenCall>()
  /** Executions that go on, also of calls that are gone. */
  readonly #running = new Map<string, TakenCall>()
  /** Calls that were answered or cancelled. */
  readonly #finished = new RecentKeys()
  /** Calls that were cancelled before they were offered: nothing of them was executed. */
  readonly #unwanted = new RecentKeys()
  /** Failures to report when the broker is back, of calls that failed while it was away. The calls themselves would hold their inputs. */
  #untold: { readonly to: string; readonly message: OutgoingMessage }[] = []

  constructor(context: IncomingCallsContext) {
    this.#context = {
      ...context,
      held: { bytes: 0 },
      started: (call) => this.#running.set(call.key, call),
      ended: (now, call) => this.#ended(now, call),
    }
    this.slots = new CallSlots({
      ...context,
      isExpected: (from, transfer) => context.incomingTransfers.has(from, transfer),
      heldBytes: () => this.heldBytes,
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

  /** Bytes of outputs that are held for callers. */
  get heldBytes(): number {
    return this.#context.held.bytes
  }

  /** Takes no new work from now on, and says what it has taken; questions are answered. */
  drain(): void {
    this.slots.drain()
    for (const call of this.#calls.values()) call.sayTaken()
  }

  /** Takes what a caller says. */
  on(now: number, message: Message): void {
    const { from } = message
    const key = callKey(from, message.call)
    if (message.type === 'offer') {
      for (const number of message.done ?? []) this.#calls.get(callKey(from, number))?.end(now)
    }
    const call = this.#calls.get(key)
    if (call !== undefined) call.on(now, message)
    else if (message.type === 'offer') this.#offered(now, key, message)
    else this.#onUnknown(now, key, message)
  }

  respond(now: number, key: string, response: SentResponse): void {
    this.#calls.get(key)?.answer.add(now, response)
  }

  /** Tells, as ResponseSink's `ready`, when the call's execution may send a further response. */
  ready(key: string): Promise<void> | undefined {
    return this.#calls.get(key)?.answer.ready()
  }

  /** Answers the call with the error of its execution, as the last response. */
  failed(now: number, key: string, { error, times }: FailedExecution): void {
    this.#calls.get(key)?.answer.addError(now, error, times)
  }

  /** Takes the end of an execution. If it gave no final response, the caller gets `error`, or that this is a bug. */
  ended(now: number, key: string, error?: unknown): void {
    const running = this.#running.get(key)
    const call = this.#calls.get(key)
    if (running !== undefined) {
      this.#running.delete(key)
      this.slots.giveBytes(running)
      // A call has its slot until it is done and its execution has ended.
      if (call !== running) this.slots.giveSlot(running)
    }
    if (call?.answer.hasFinal === false) call.unanswered(now, error)
  }

  /** Refuses an offer: its caller gets the error. */
  reject(offer: Offer, error: ServeError): void {
    throwAway(this.#context.incomingTransfers, offer)
    this.#context.send(offer.from, refusedMessage(offer.call, error))
  }

  /** Aborts and forgets all calls of a caller that is dead or has left. */
  callerGone(now: number, from: string, why: string): void {
    for (const call of this.#calls.values()) {
      if (call.from !== from) continue
      call.end(now, new ServeError('CANCELLED', `caller '${from}' ${why}`))
    }
  }

  /** Ends the calls that need the broker, which is away. @param isReached - true for a member that is reached without it. */
  disconnected(now: number, isReached?: (member: string) => boolean): void {
    for (const call of this.#calls.values()) {
      if (isReached?.(call.from) === true) continue
      if (this.#untold.length < TOMBSTONES) {
        this.#untold.push({ to: call.from, message: call.lastWord() })
      }
      call.cutOff(now)
    }
  }

  /** Tells callers how their calls ended while the broker was away. It is back. */
  reconnected(): void {
    for (const { to, message } of this.#untold) this.#context.send(to, message)
    this.#untold = []
  }

  /** Counts time in which nothing was heard, because this process did not listen, as no silence of the callers. */
  missed(ms: number): void {
    for (const call of this.#calls.values()) call.missed(ms)
  }

  /** Looks after calls whose time is over or that do not move. */
  tick(now: number): void {
    this.#finished.tick(now)
    this.#unwanted.tick(now)
    for (const call of this.#calls.values()) call.tick(now)
  }

  #offered(now: number, key: string, offer: Offer): void {
    const { self, incomingTransfers } = this.#context
    const { from, call, envelope } = offer
    if (this.#finished.has(key)) {
      throwAway(incomingTransfers, offer)
      this.#sayLost(from, call, maybeExecuted(self, envelope, 'has ended this call'))
      return
    }
    if (this.#unwanted.has(key)) {
      // Who cancelled it no longer listens; if a stranger did, the caller can go elsewhere.
      this.reject(offer, notExecuted(self, envelope, 'was told to cancel the call'))
      return
    }
    const problem = this.slots.take(offer, this.#running.has(key))
    if (problem !== undefined) {
      this.reject(offer, problem)
      return
    }
    const taken = new TakenCall(now, this.#context, { key, offer })
    this.#calls.set(key, taken)
    taken.begin(now)
  }

  /** Takes a message about a call that is not here. */
  #onUnknown(now: number, key: string, { from, call, type }: Message): void {
    // A cancel may overtake its offer.
    if (type === 'cancel' && !this.#finished.has(key)) this.#unwanted.add(now, key)
    if (type !== 'response-credit') return
    const replica = this.#context.self
    const text = `replica '${replica}' does not know the call; it may have executed`
    this.#sayLost(from, call, new ServeError('STEP_LOST', text, { details: { replica } }))
  }

  /** Forgets the call but for its key; an execution that goes on keeps its slot and its bytes. */
  #ended(now: number, call: TakenCall): void {
    this.#calls.delete(call.key)
    this.#finished.add(now, call.key)
    if (!call.hasStarted) this.slots.giveBytes(call)
    if (!this.#running.has(call.key)) this.slots.giveSlot(call)
  }

  #sayLost(from: string, call: number, error: ServeError): void {
    this.#context.send(from, lostMessage(call, error))
  }
}

/** Names a call everywhere: the caller's id and its number. A number holds no space. */
function callKey(from: string, call: number): string {
  return `${call} ${from}`
}

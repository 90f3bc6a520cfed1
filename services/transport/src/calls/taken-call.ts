import { ServeError } from '@tutti/errors'
import {
  type Envelope,
  fromWireError,
  type Message,
  type TransferCredit,
  toWireError,
} from '@tutti/protocol'
import type { OutgoingMessage } from '../send-message.ts'
import type { AnnouncedTransfer } from '../transfers/incoming-transfers.ts'
import { arrivedBytes, transferBytes, unaskedBytes } from '../transfers/split-tensors.ts'
import { Answer, type AnswerContext } from './answer.ts'
import type { CallJob, Offer } from './call.ts'
import { callDetails, callError, lostMessage, maybeExecuted, notExecuted } from './call-errors.ts'

/** The parts of a member that the calls of others use. */
export interface IncomingContext extends AnswerContext {
  /** Starts an execution. */
  readonly execute: (job: CallJob) => void
  /** Called when the execution of a call begins. */
  readonly started: (call: TakenCall) => void
  /** Called once, when nothing more is to be heard or said of a call. */
  readonly ended: (now: number, call: TakenCall) => void
}

/** An offer that is taken, and the name of its call among those of all callers. */
export interface AdmittedOffer {
  readonly key: string
  readonly offer: Offer
}

/**
 * Number of `silenceMs` without a question after which a caller has forgotten its call: its `done` or cancel was lost with a
 * connection, else it would ask. Three are well within the grace of a drain, which waits for such calls.
 */
export const FORGOTTEN_SILENCES = 3
/** Number of `silenceMs` for which an answer is held for a caller that asks but takes nothing. */
export const HELD_SILENCES = 12

const LOST_BROKER = 'lost its connection to the broker'

/** A call that this member has accepted: gathers its inputs, has it executed once, and ends when its caller has the answer. */
export class TakenCall {
  readonly key: string
  readonly from: string
  readonly envelope: Envelope
  /** Bytes that its inputs have reserved, until the execution has ended. */
  readonly reserved: number
  readonly answer: Answer
  /** The execution has begun. */
  hasStarted = false
  readonly #context: IncomingContext
  readonly #offer: Offer
  readonly #inputs: (Uint8Array | undefined)[]
  /** Inputs that have not arrived. */
  #missing: number
  readonly #arrivedAt: number
  readonly #abort = new AbortController()
  /** The caller was told that the call is taken. A response says it too. */
  #isSaid = false
  /** Time at which the caller last said something about the call. */
  #heardAt: number
  #isOver = false

  constructor(now: number, context: IncomingContext, { key, offer }: AdmittedOffer) {
    this.#context = context
    this.key = key
    this.from = offer.from
    this.envelope = offer.envelope
    this.reserved = transferBytes(offer.parts)
    this.answer = new Answer(now, context, offer, (error) => this.#abort.abort(error))
    this.#offer = offer
    this.#inputs = offer.parts.map(arrivedBytes)
    this.#missing = this.#inputs.filter((input) => input === undefined).length
    this.#arrivedAt = now
    this.#heardAt = now
  }

  /**
   * Starts the execution, or waits for inputs. Accepts at once only if the caller waits for credits: else the response says it,
   * or the next tick.
   */
  begin(now: number): void {
    if (this.#missing === 0) {
      this.#start(now)
      return
    }
    const { parts } = this.#offer
    const credits = this.#context.incomingTransfers.open(now, this.#announce())
    if (credits.length > 0 || unaskedBytes(parts) < this.reserved) this.#accept(credits)
  }

  /** Takes what the caller says; what only a callee says changes nothing. */
  on(now: number, message: Message): void {
    this.#heardAt = now
    switch (message.type) {
      case 'offer':
        this.#accept(this.#context.incomingTransfers.credits(this.from, this.#offer.call))
        return
      case 'credit':
        this.answer.credit(now, message.credits)
        return
      case 'resend':
        this.answer.resend(message.transfer, message.offset)
        return
      case 'response-credit':
        this.answer.grant(now, message.responses)
        if (this.answer.isLost(now, message.received))
          this.#lose(now, 'has answered', 'the answer was lost')
        return
      case 'cancel':
        this.end(now, fromWireError(message.error))
        return
      case 'done':
        this.end(now)
        return
      case 'accepted':
      case 'refused':
      case 'response':
        return
    }
  }

  /** Tells a caller that does not know it that the call is taken. */
  sayTaken(): void {
    if (!this.#isSaid && !this.answer.hasSent) this.#accept([])
  }

  /** Answers with an error, because the execution has failed or ended without a final response. */
  unanswered(now: number, failure: unknown): void {
    const { self } = this.#context
    const text = `bug: replica '${self}' ended without a final response`
    const error = failure === undefined ? new ServeError('INTERNAL', text) : failure
    const details = callDetails(self, this.envelope)
    this.answer.addError(now, ServeError.from(error).withDetails(details))
  }

  /** Counts time in which this process did not listen as no silence of the caller. */
  missed(ms: number): void {
    this.#heardAt += ms
  }

  /** Ends a call whose time is over, or that does not move. */
  tick(now: number): void {
    this.sayTaken()
    const { remainingMs } = this.envelope
    if (remainingMs !== undefined && now - this.#arrivedAt >= remainingMs) this.#expire(now)
    if (this.#isOver) return
    const { silenceMs } = this.#context.settings
    const forgottenMs = FORGOTTEN_SILENCES * silenceMs
    const holdMs = HELD_SILENCES * silenceMs
    // Nothing has happened since then, or since we last sent something of it.
    const unheardMs = now - Math.max(this.#heardAt, this.answer.sentAt)
    const untakenMs = now - (this.answer.untakenSince ?? now)
    const caller = `caller '${this.from}'`
    if (this.#missing === 0 && unheardMs >= forgottenMs) {
      this.#lose(now, `${caller} said nothing for ${forgottenMs} ms`)
    } else if (untakenMs >= holdMs) {
      this.#lose(now, `${caller} took nothing for ${holdMs} ms`)
    }
  }

  /** Makes the message for the caller that says, once the lost connection is back, how its call ended. */
  lastWord(): OutgoingMessage {
    const { self } = this.#context
    const { call } = this.#offer
    if (this.#missing === 0)
      return lostMessage(call, maybeExecuted(self, this.envelope, LOST_BROKER))
    return refusedMessage(call, notExecuted(self, this.envelope, LOST_BROKER))
  }

  /** Ends the call because the broker, over which its caller was reached, is away. */
  cutOff(now: number): void {
    this.end(now, maybeExecuted(this.#context.self, this.envelope, LOST_BROKER))
  }

  /**
   * Ends the call and drops all that is held for it. An execution that has not given its final response is told to stop.
   * @param reason - undefined if the caller has its answer.
   */
  end(now: number, reason?: ServeError): void {
    if (this.#isOver) return
    this.#isOver = true
    const wasAnswered = this.answer.hasFinal
    this.#context.ended(now, this)
    for (const part of this.#offer.parts) {
      if (part.kind === 'transfer')
        this.#context.incomingTransfers.drop(now, this.from, part.transfer)
    }
    this.answer.forget()
    if (wasAnswered) return
    this.#abort.abort(reason ?? new ServeError('CANCELLED', 'said to be done'))
  }

  #accept(credits: readonly TransferCredit[]): void {
    this.#isSaid = true
    this.#context.send(this.from, { type: 'accepted', call: this.#offer.call, credits })
  }

  #announce(): AnnouncedTransfer[] {
    const { from, call, parts } = this.#offer
    return parts.flatMap((part, i) => {
      if (part.kind === 'inline' || part.size === 0) return []
      const { transfer, size, isUnasked } = part
      const onArrived = (now: number, bytes: Uint8Array): void => {
        this.#inputs[i] = bytes
        this.#missing -= 1
        if (this.#missing === 0) this.#start(now)
      }
      const onStalled = (now: number): void => this.#stalled(now, transfer)
      return [{ from, call, transfer, size, isUnasked, onArrived, onStalled }]
    })
  }

  #start(now: number): void {
    const { key, from, envelope } = this
    const left = envelope.remainingMs
    const remaining = left === undefined ? undefined : left - (now - this.#arrivedAt)
    if (remaining !== undefined && remaining <= 0) return this.#expire(now)
    this.hasStarted = true
    // While its inputs came nothing else had to be said.
    this.#heardAt = now
    this.#context.started(this)
    this.#context.execute({
      key,
      from,
      inputs: this.#inputs.map((input) => input ?? new Uint8Array()),
      signal: this.#abort.signal,
      envelope: remaining === undefined ? envelope : { ...envelope, remainingMs: remaining },
    })
  }

  #stalled(now: number, transfer: number): void {
    const { self, settings } = this.#context
    const why = `got nothing of transfer ${transfer} for ${settings.stallMs} ms, twice`
    this.#refuse(now, notExecuted(self, this.envelope, why))
  }

  /** Expires the call: a running execution is told, one that has not begun never begins. */
  #expire(now: number): void {
    if (this.#abort.signal.aborted || this.answer.hasFinal) return
    const text = "the request's time is over"
    const error = callError({
      reason: 'DEADLINE_EXCEEDED',
      replica: this.#context.self,
      envelope: this.envelope,
      text,
    })
    if (this.hasStarted) this.#abort.abort(error)
    else this.#refuse(now, error)
  }

  /** Refuses the call, which is not executed. */
  #refuse(now: number, error: ServeError): void {
    this.#context.send(this.from, refusedMessage(this.#offer.call, error))
    this.end(now, error)
  }

  /** @param reason - for the execution; `why` if absent. */
  #lose(now: number, why: string, reason = why): void {
    const error = maybeExecuted(this.#context.self, this.envelope, why)
    this.#context.send(this.from, lostMessage(this.#offer.call, error))
    this.end(now, new ServeError('CANCELLED', reason))
  }
}

/** Makes the message that a call is not taken, or will never be executed. */
export function refusedMessage(call: number, error: ServeError): OutgoingMessage {
  return { type: 'refused', call, error: toWireError(error) }
}

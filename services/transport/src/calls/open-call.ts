import type { ServeError } from '@tutti/errors'
import { type Envelope, fromWireError, type Message, toWireError } from '@tutti/protocol'
import { executedBefore, executedUnanswered, type ResponseSink } from '@tutti/tensor'
import type { Departure } from '../members/membership.ts'
import { unaskedBytes } from '../transfers/split-tensors.ts'
import { ArrivingResponses, type ReceivingCall } from './arriving-responses.ts'
import type { CallListener, MessagingContext, ResponseMessage } from './call.ts'
import { maybeExecuted, notExecuted } from './call-errors.ts'
import type { CalledReplicas, UnaskedBytes } from './called-replicas.ts'
import type { ResponseMemory } from './response-memory.ts'
import { SentTensors } from './sent-tensors.ts'

/** The parts of a member that its calls to others use. */
export interface OutgoingContext extends MessagingContext {
  readonly replicas: CalledReplicas
  readonly memory: ResponseMemory
  /** Called once the call is over. */
  readonly ended: (call: OpenCall) => void
}

/** A call to be made, and the one that makes it. */
export interface RequestedCall {
  /** The replica. */
  readonly to: string
  readonly envelope: Envelope
  /** Bytes of `envelope.inputs`; viewed until the call ends. */
  readonly tensors: readonly Uint8Array[]
  readonly listener: CallListener
}

/** A call with the number that messages about it say. */
interface NumberedCall extends RequestedCall {
  readonly call: number
}

/** A call of ours: offers it, sends its inputs under the replica's credits, and ends it once, at its sink. */
export class OpenCall implements ReceivingCall {
  readonly call: number
  readonly to: string
  readonly envelope: Envelope
  readonly sink: ResponseSink
  hasEnded = false
  readonly #context: OutgoingContext
  readonly #listener: CallListener
  readonly #inputs: SentTensors
  readonly #responses: ArrivingResponses
  /** Bytes of it that may go unasked. */
  readonly #unasked: UnaskedBytes
  readonly #openedAt: number
  #offers = 0
  #isAccepted = false
  /** Time at which the replica last granted credit, or this member last sent. */
  #progressAt: number
  /** Time at which the replica last said something about this call, or was asked about it. */
  #heardAt: number

  constructor(now: number, context: OutgoingContext, requested: NumberedCall) {
    const { call, to, envelope, tensors, listener } = requested
    this.call = call
    this.to = to
    this.envelope = envelope
    this.sink = listener.sink
    this.#context = context
    this.#listener = listener
    this.#openedAt = now
    this.#progressAt = now
    this.#heardAt = now
    const { inputs, responses } = context.replicas.unaskedFor(to)
    this.#inputs = new SentTensors(context, {
      to,
      tensors,
      unasked: inputs,
      retain: listener.retain,
      progressed: (at) => this.progressed(at),
    })
    this.#responses = new ArrivingResponses(context, context.memory, this)
    this.#unasked = { inputs: unaskedBytes(this.#inputs.parts), responses }
    context.replicas.opened(to, this.#unasked)
  }

  get progressAt(): number {
    return this.#progressAt
  }

  /** Makes the offer. @throws ServeError if it cannot be a message. */
  offer(now: number): void {
    const { replicas, send, settings } = this.#context
    const { responses: responseBytes } = this.#unasked
    const { call, to, envelope } = this
    const left = envelope.remainingMs
    const done = replicas.doneCalls(to)
    this.#offers += 1
    this.#heardAt = now
    send(to, {
      type: 'offer',
      call,
      envelope:
        left === undefined ? envelope : { ...envelope, remainingMs: left - (now - this.#openedAt) },
      parts: this.#inputs.parts,
      responseCredits: settings.responseCredits,
      ...(responseBytes > 0 && { responseBytes }),
      ...(done.length > 0 && { done }),
    })
    replicas.saidDone(to)
  }

  /** Takes what the replica says; what only a caller says changes nothing. */
  on(now: number, message: Message): void {
    this.#heardAt = now
    switch (message.type) {
      case 'response':
        this.#onResponse(now, message)
        return
      case 'accepted':
      case 'credit':
        if (message.type === 'accepted') this.#onAccepted(now)
        if (this.#inputs.credit(message.credits)) this.#progressAt = now
        return
      case 'resend':
        this.#inputs.resend(message.transfer, message.offset)
        return
      case 'refused':
        this.fail(now, fromWireError(message.error))
        return
      case 'offer':
      case 'response-credit':
      case 'cancel':
      case 'done':
        return
    }
  }

  /**
   * Looks after a call that does not move.
   * @param progressAt - when its replica last let something of any call be sent: tensors to one replica wait for one another.
   */
  tick(now: number, progressAt: number): void {
    const { silenceMs, waitMs } = this.#context.settings
    const isSilent = now - this.#heardAt >= silenceMs
    const lacking = this.#responses.lacksMemory(now, waitMs)
    if (!this.#isAccepted) {
      if (isSilent) this.lose(now, `did not answer an offer for ${silenceMs} ms`)
    } else if (!this.#inputs.areSent && now - progressAt >= waitMs) {
      this.lose(now, `let nothing more be sent for ${waitMs} ms`)
    } else if (lacking !== undefined) {
      const why = `sent response ${lacking}, for which there was no free memory in ${waitMs} ms`
      this.reject(now, maybeExecuted(this.to, this.envelope, why))
    } else if (isSilent) {
      // Says again what the replica should know; one that has forgotten the call answers so.
      this.#heardAt = now
      this.#responses.grant()
    }
  }

  /** Counts time in which this process did not listen as no silence of the replica. */
  missed(ms: number): void {
    this.#heardAt += ms
    this.#progressAt += ms
  }

  /** Takes the broker's word that the offer had no responder. @returns false if the replica has answered it. */
  noResponder(now: number): boolean {
    if (this.#isAccepted) return false
    // After a repeated offer it is unknown whether the first arrived.
    if (this.#offers === 1) {
      this.fail(now, notExecuted(this.to, this.envelope, 'does not listen'))
    }
    return true
  }

  /**
   * Ends the call, whose replica is gone, unless the broker may be about to say that the offer had no responder.
   * @returns true in that case: the call is still open.
   */
  replicaGone(now: number, how: Departure): boolean {
    const isOfferOpen = !this.#isAccepted && this.#offers === 1 && this.#inputs.areSent
    if (isOfferOpen && how === 'dead') return true
    if (isOfferOpen) {
      this.giveUp(now, notExecuted(this.to, this.envelope, 'left before it took the call'))
    } else this.lose(now, 'is gone')
    return false
  }

  /** Makes an open offer once more: it, or its answer, may be lost with the connection. All else comes to light by itself. */
  pathBroken(now: number): void {
    if (!this.#isAccepted && this.#offers === 1) this.offer(now)
  }

  /** Ends the call when contact with the replica is lost and it cannot be told. */
  cutOff(now: number, why: string): void {
    this.fail(now, this.#lost(why))
  }

  /** Ends the call when contact with the replica is lost, and tells it that no answer is wanted. */
  lose(now: number, why: string): void {
    this.giveUp(now, this.#lost(why))
  }

  /** Ends the call with an error of ours, and tells the replica. */
  giveUp(now: number, error: ServeError): void {
    this.#sayCancel(error)
    this.fail(now, error)
  }

  /** Ends the call with an error that the replica knows, or cannot be told. */
  fail(now: number, error: ServeError): void {
    if (this.hasEnded) return
    this.#end(now)
    this.sink.fail(error, executedUnanswered(error))
  }

  /** Ends a call whose answer cannot be taken, with an error of its own, because the replica has executed. */
  reject(now: number, error: ServeError): void {
    if (this.hasEnded) return
    this.#sayCancel(error)
    this.#end(now)
    this.sink.fail(error, executedBefore(error))
  }

  /** Ends the call well: its reader has the final response. */
  finish(now: number): void {
    this.#context.replicas.done(this.to, this.call)
    this.#end(now)
  }

  /** Lets go of the inputs, and of the call's part of what may go unasked: it has ended, or its offer could not be made. */
  drop(): void {
    this.#inputs.drop()
    this.#context.replicas.closed(this.to, this.#unasked)
  }

  heard(now: number): void {
    this.#heardAt = now
  }

  progressed(now: number): void {
    this.#progressAt = now
  }

  #onAccepted(now: number): void {
    if (!this.#isAccepted) this.#progressAt = now
    this.#isAccepted = true
  }

  #onResponse(now: number, message: ResponseMessage): void {
    this.#isAccepted = true
    // The replica has forgotten the call, so what it said before may never come.
    if (message.error?.reason === 'STEP_LOST') this.fail(now, fromWireError(message.error))
    else this.#responses.add(now, message)
  }

  #lost(why: string): ServeError {
    const make = this.#inputs.areSent ? maybeExecuted : notExecuted
    return make(this.to, this.envelope, why)
  }

  #sayCancel(error: ServeError): void {
    if (this.hasEnded) return
    this.#context.send(this.to, { type: 'cancel', call: this.call, error: toWireError(error) })
  }

  #end(now: number): void {
    this.hasEnded = true
    this.#listener.ended()
    this.#context.ended(this)
    this.drop()
    this.#responses.forget(now)
  }
}

import { ServeError } from '@tutti/errors'
import { type TransferCredit, toWireError } from '@tutti/protocol'
import { outputBytes, ReadyGate } from '@tutti/tensor'
import { transferBytes, unaskedBytes } from '../transfers/split-tensors.ts'
import type { MessagingContext, Offer, SentResponse } from './call.ts'
import { callDetails, callError, errorResponse, readsTooSlowly } from './call-errors.ts'
import { ReadWindow } from './read-window.ts'
import { SentTensors } from './sent-tensors.ts'

/** The parts of a member that answers to its callers use. */
export interface AnswerContext extends MessagingContext {
  readonly self: string
  /** Bytes of outputs that are held for all callers. */
  readonly held: { bytes: number }
}

/** A response that waits for credit. */
interface QueuedResponse extends SentResponse {
  /** Gives the bytes of its outputs back, if they are lent. */
  readonly giveBack: (() => void) | undefined
}

/** The tensors of a response that are kept until the caller has read it. */
interface HeldResponse {
  readonly tensors: SentTensors
  readonly bytes: number
  readonly giveBack: (() => void) | undefined
}

/**
 * Sends the responses of one accepted call: in order, as many as the caller has credit for, and no more bytes ahead of its
 * reader than fit the window. What waits, and the tensors that the caller has not read yet, are held and bounded; a call that
 * would hold more ends with OVERLOADED. An execution that waits for `ready` before each response never gets that far.
 */
export class Answer {
  readonly #context: AnswerContext
  readonly #offer: Offer
  /** Told that the answer has become an error by itself. */
  readonly #failed: (error: ServeError) => void
  readonly #window: ReadWindow
  #queue: QueuedResponse[] = []
  /** Sent responses that the caller has not read and that have transfers, by index. */
  readonly #held = new Map<number, HeldResponse>()
  /** Gate at which the execution waits for the caller to read. */
  #gate: ReadyGate | undefined
  /** Bytes of transfers that the caller takes unasked. */
  #unaskedLeft: number
  #hasFinal = false
  /** Times at which the caller last took something, and at which this member last sent something. */
  #takenAt: number
  #sentAt: number

  constructor(
    now: number,
    context: AnswerContext,
    offer: Offer,
    failed: (error: ServeError) => void,
  ) {
    this.#context = context
    this.#offer = offer
    this.#failed = failed
    this.#window = new ReadWindow(offer.responseCredits, context.settings)
    this.#unaskedLeft = offer.responseBytes ?? 0
    this.#takenAt = now
    this.#sentAt = now
  }

  /** True once the final response is here, sent or not, and once no further one is wanted. */
  get hasFinal(): boolean {
    return this.#hasFinal
  }

  get hasSent(): boolean {
    return this.#window.sent > 0
  }

  get sentAt(): number {
    return this.#sentAt
  }

  /** Time since which the caller has taken nothing of what waits for it; undefined if nothing waits. */
  get untakenSince(): number | undefined {
    const isCallersTurn = this.#queue.length > 0 || this.#hasFinal
    return isCallersTurn ? Math.max(this.#takenAt, this.#sentAt) : undefined
  }

  /** Takes a response. After the final one it takes no more. */
  add(now: number, response: SentResponse): void {
    if (this.#hasFinal) return
    const problem = this.#problem(response)
    if (problem !== undefined) {
      this.#endWith(now, problem)
      return
    }
    this.#hasFinal = response.final
    // It may have to wait for credit, and its transfers for the caller.
    this.#queue.push({ ...response, giveBack: response.retain?.() })
    this.#context.held.bytes += outputBytes(response)
    this.#flush(now)
    if (response.final) this.#gate?.open()
  }

  /** Takes an error as the last response, behind those that wait. */
  addError(now: number, error: ServeError, times?: SentResponse['times']): void {
    const last = errorResponse(this.#window.sent + this.#queue.length, error)
    this.add(now, times === undefined ? last : { ...last, times })
  }

  /** Tells, as ResponseSink's `ready`, when a further response may come: undefined if it would go out at once, or be dropped. */
  ready(): Promise<void> | undefined {
    if (this.#maySendNow()) return undefined
    this.#gate ??= new ReadyGate()
    return this.#gate.wait()
  }

  /** Takes the caller's word that it allows `responses` in all. It has read as many as exceed those that it allowed at first. */
  grant(now: number, responses: number): void {
    const read = this.#window.grant(responses)
    if (read === undefined) return
    this.#takenAt = now
    for (const [index, response] of this.#held) {
      if (index >= read) break
      this.#held.delete(index)
      this.#letGo(response)
    }
    this.#flush(now)
  }

  /** Takes credits for tensors of responses. */
  credit(now: number, credits: readonly TransferCredit[]): void {
    for (const { tensors } of this.#held.values()) {
      if (tensors.credit(credits)) this.#takenAt = now
    }
  }

  /** Sends the tensor of a transfer again, from `offset` on. */
  resend(transfer: number, offset: number): void {
    for (const { tensors } of this.#held.values()) tensors.resend(transfer, offset)
  }

  /**
   * Tells whether the caller has lost part of the answer: it still asks, long after it should have had what was sent.
   * @param received - number of responses that it says it has.
   */
  isLost(now: number, received: number): boolean {
    const isFinalSent = this.#hasFinal && this.#queue.length === 0
    // Until the final response it may just be slow, and has all that was sent.
    if (!isFinalSent && received >= this.#window.sent) return false
    const { stallMs, waitMs } = this.#context.settings
    // A caller that has no memory for a transfer lets nothing come for a while, and then gives up by itself.
    const areSent = [...this.#held.values()].every(({ tensors }) => tensors.areSent)
    return now - Math.max(this.#sentAt, this.#takenAt) >= (areSent ? 2 * stallMs : waitMs + stallMs)
  }

  /** Drops the responses that wait or are held, and gives their bytes back. No further one is taken. */
  forget(): void {
    for (const response of this.#held.values()) this.#letGo(response)
    this.#held.clear()
    this.#dropQueue()
    this.#hasFinal = true
    this.#gate?.open()
  }

  /** Sends what the caller has credit for. */
  #flush(now: number): void {
    while (this.#queue.length > 0 && this.#window.isOpen) {
      const response = this.#queue.shift()
      if (response !== undefined) this.#send(now, response)
    }
    if (this.#maySendNow()) this.#gate?.open()
  }

  #maySendNow(): boolean {
    return this.#hasFinal || (this.#queue.length === 0 && this.#window.isOpen)
  }

  #problem(response: SentResponse): ServeError | undefined {
    const { self, settings, held } = this.#context
    const { from, envelope } = this.#offer
    const { tensorBytes, tensorBytesPerMember, heldResponses } = settings
    for (const { name, data } of response.outputs) {
      if (data.byteLength <= tensorBytesPerMember) continue
      const text = `output "${name}": ${data.byteLength} bytes on the way to '${from}', want at most ${tensorBytesPerMember}`
      return callError({ reason: 'MESSAGE_TOO_LARGE', replica: self, envelope, text })
    }
    const waiting = this.#queue.length
    // One response passes whatever it weighs, else a large answer could never be given.
    const isFirst = waiting === 0 && this.#held.size === 0
    const bytes = held.bytes + outputBytes(response)
    if (isFirst || (bytes <= tensorBytes && waiting < heldResponses)) return undefined
    return readsTooSlowly({ replica: self, from, envelope }, { waiting, bytes }, settings)
  }

  /** Drops the responses that wait; the error is the next response, and the last. */
  #endWith(now: number, error: ServeError): void {
    this.#dropQueue()
    this.#hasFinal = true
    this.#queue.push({ ...errorResponse(this.#window.sent, error), giveBack: undefined })
    this.#failed(error)
    this.#flush(now)
    this.#gate?.open()
  }

  #dropQueue(): void {
    for (const waiting of this.#queue.splice(0)) {
      this.#context.held.bytes -= outputBytes(waiting)
      waiting.giveBack?.()
    }
  }

  #letGo({ tensors, bytes, giveBack }: HeldResponse): void {
    tensors.drop()
    this.#context.held.bytes -= bytes
    giveBack?.()
  }

  #send(now: number, response: QueuedResponse): void {
    const { held, send, self } = this.#context
    const { from, call, envelope } = this.#offer
    const { outputs, final, parameters, error, times, giveBack } = response
    const tensors = this.#sentTensors(response)
    held.bytes -= outputBytes(response)
    try {
      send(from, {
        type: 'response',
        call,
        index: this.#window.sent,
        final,
        outputs,
        parts: tensors.parts,
        parameters,
        ...(error !== undefined && { error: toWireError(error) }),
        ...(times !== undefined && { times }),
      })
    } catch (problem) {
      tensors.drop()
      giveBack?.()
      this.#endWith(now, ServeError.from(problem).withDetails(callDetails(self, envelope)))
      return
    }
    this.#unaskedLeft -= unaskedBytes(tensors.parts)
    if (tensors.hasTransfers) {
      const bytes = transferBytes(tensors.parts)
      held.bytes += bytes
      this.#held.set(this.#window.sent, { tensors, bytes, giveBack })
    } else giveBack?.()
    this.#window.add(outputBytes(response))
    this.#sentAt = now
  }

  #sentTensors({ outputs, retain }: QueuedResponse): SentTensors {
    return new SentTensors(this.#context, {
      to: this.#offer.from,
      tensors: outputs.map(({ data }) => data),
      unasked: this.#unaskedLeft,
      retain,
      progressed: (at) => {
        this.#takenAt = at
        this.#sentAt = at
      },
    })
  }
}

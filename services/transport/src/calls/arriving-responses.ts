import type { ServeError } from '@tutti/errors'
import { type Envelope, fromWireError, INLINE_LIMIT_BYTES, type TensorPart } from '@tutti/protocol'
import { executedBefore, type ResponseSink, type StepResponse } from '@tutti/tensor'
import type { AnnouncedTransfer } from '../transfers/incoming-transfers.ts'
import { arrivedBytes, transferBytes } from '../transfers/split-tensors.ts'
import type { MessagingContext, ResponseMessage } from './call.ts'
import { outOfTurn, stalled, tooLargeResponse } from './call-errors.ts'
import type { ResponseMemory } from './response-memory.ts'

/** The call that responses arrive for. */
export interface ReceivingCall {
  readonly call: number
  readonly to: string
  readonly envelope: Envelope
  readonly sink: ResponseSink
  readonly hasEnded: boolean
  /** The replica has said something about the call. */
  heard(now: number): void
  /** The replica may send more. */
  progressed(now: number): void
  /** The final response is with the reader. */
  finish(now: number): void
  /** Ends the call with an error and tells the replica. */
  reject(now: number, error: ServeError): void
}

/** A response whose message is here and whose transfers may still be on their way. */
interface ArrivingResponse {
  readonly message: ResponseMessage
  /** Bytes of the parts, in the order of `message.parts`; undefined for parts that have not arrived. */
  readonly bytes: (Uint8Array | undefined)[]
  missing: number
  /** Bytes that it has reserved. */
  reserved: number
}

/**
 * Brings the responses of one call to its reader: in order, with their transfers put together, within the bytes that this
 * process takes. A response for which there is no memory waits; those behind it wait with it.
 */
export class ArrivingResponses {
  readonly #context: MessagingContext
  readonly #memory: ResponseMemory
  readonly #call: ReceivingCall
  readonly #responses = new Map<number, ArrivingResponse>()
  /** Responses below this index have their transfers under way. */
  #nextToOpen = 0
  /** Responses below this index are with the reader. */
  #nextToDeliver = 0
  #finalIndex = Number.POSITIVE_INFINITY
  /** Responses that the reader has taken, and bytes of those that the replica has not been told of. */
  #taken = 0
  #takenBytes = 0
  /** How many responses the replica was allowed in all. */
  #granted: number
  /** Time since which the next response waits for memory. */
  #waitingSince: number | undefined

  constructor(context: MessagingContext, memory: ResponseMemory, call: ReceivingCall) {
    this.#context = context
    this.#memory = memory
    this.#call = call
    this.#granted = context.settings.responseCredits
  }

  /** Takes a response message. One that is there already changes nothing. */
  add(now: number, message: ResponseMessage): void {
    const { index } = message
    if (index < this.#nextToDeliver || this.#responses.has(index)) return
    if (index >= this.#granted || index > this.#finalIndex) {
      this.#call.reject(now, outOfTurn(this.#call, index, this.#granted))
      return
    }
    if (message.final) this.#finalIndex = index
    const bytes = message.parts.map(arrivedBytes)
    const missing = bytes.filter((one) => one === undefined).length
    this.#responses.set(index, { message, bytes, missing, reserved: 0 })
    this.retry(now)
  }

  /** Lets further responses arrive, as far as there is memory for them. */
  retry(now: number): void {
    for (;;) {
      const next = this.#responses.get(this.#nextToOpen)
      if (next === undefined) break
      if (!this.#open(now, next)) return
      this.#nextToOpen += 1
      this.#waitingSince = undefined
      this.#memory.stopWaiting(this)
    }
    this.#deliver(now)
  }

  /** Finds the response that has waited for memory for `forMs`. @returns its index; undefined if none has. */
  lacksMemory(now: number, forMs: number): number | undefined {
    const since = this.#waitingSince
    return since !== undefined && now - since >= forMs ? this.#nextToOpen : undefined
  }

  /** Tells the replica how many responses the reader has taken, by how many it may send in all, and how many are here. */
  grant(): void {
    const { send, settings } = this.#context
    const { call, to } = this.#call
    this.#takenBytes = 0
    this.#granted = this.#taken + settings.responseCredits
    let received = this.#nextToOpen
    while (this.#responses.has(received)) received += 1
    send(to, { type: 'response-credit', call, responses: this.#granted, received })
  }

  /** Drops all responses of a call that has ended, and gives back the bytes that they reserved. */
  forget(now: number): void {
    const { to } = this.#call
    this.#memory.stopWaiting(this)
    for (const response of this.#responses.values()) {
      for (const part of response.message.parts) {
        if (part.kind === 'transfer') this.#context.incomingTransfers.drop(now, to, part.transfer)
      }
      response.missing = 0
      this.#memory.give(to, response.reserved)
      response.reserved = 0
    }
    this.#responses.clear()
    this.#memory.retry(now)
  }

  /** Lets the transfers of a response begin. @returns false if it has to wait, or the call has failed. */
  #open(now: number, response: ArrivingResponse): boolean {
    if (response.missing === 0) return true
    const { incomingTransfers, send } = this.#context
    const { parts, index } = response.message
    const { call, to } = this.#call
    const size = transferBytes(parts)
    if (size > this.#memory.largest) {
      this.#call.reject(now, tooLargeResponse(this.#call, size, this.#memory.largest))
      return false
    }
    if (!this.#memory.take(to, size, this)) {
      this.#waitingSince ??= now
      return false
    }
    response.reserved = size
    const announced = parts.flatMap((part, i) => this.#announce(response, part, i))
    const numbers = new Set(announced.map(({ transfer }) => transfer))
    const isTaken = announced.some(({ transfer }) => incomingTransfers.has(to, transfer))
    if (isTaken || numbers.size < announced.length) {
      this.#call.reject(now, outOfTurn(this.#call, index, this.#granted))
      return false
    }
    const credits = incomingTransfers.open(now, announced)
    if (credits.length > 0) send(to, { type: 'credit', call, credits })
    return true
  }

  #announce(response: ArrivingResponse, part: TensorPart, i: number): AnnouncedTransfer[] {
    if (part.kind === 'inline' || part.size === 0) return []
    const { transfer, size, isUnasked } = part
    const onArrived = (now: number, arrived: Uint8Array): void => {
      response.bytes[i] = arrived
      response.missing -= 1
      this.#call.heard(now)
      this.#deliver(now)
    }
    const onStalled = (now: number): void =>
      this.#call.reject(now, stalled(this.#call, response.message.index))
    const { call, to: from } = this.#call
    return [{ from, call, transfer, size, isUnasked, onArrived, onStalled }]
  }

  #deliver(now: number): void {
    while (this.#nextToDeliver < this.#nextToOpen) {
      const response = this.#responses.get(this.#nextToDeliver)
      if (response === undefined || response.missing > 0) return
      this.#responses.delete(this.#nextToDeliver)
      this.#nextToDeliver += 1
      if (response.message.final) this.#call.finish(now)
      this.#hand(now, response)
    }
  }

  /**
   * Hands a response to the reader. Its bytes stay reserved until the reader is ready to go beyond it, so that slow readers bound
   * what comes.
   */
  #hand(now: number, response: ArrivingResponse): void {
    const { sink } = this.#call
    const { error, times } = response.message
    if (error === undefined) sink.send(toStepResponse(response))
    else {
      const failure = fromWireError(error)
      sink.fail(failure, executedBefore(failure), times && { ...times, transferNs: 0 })
    }
    let size = 0
    for (const one of response.bytes) size += one?.byteLength ?? 0
    const taken = (at: number): void => {
      if (response.reserved > 0) this.#memory.give(this.#call.to, response.reserved)
      this.#tookOne(at, size)
      this.#memory.retry(at)
    }
    const ready = this.#call.hasEnded ? undefined : sink.ready?.()
    if (ready === undefined) taken(now)
    else void ready.then(() => taken(this.#context.clock.now()))
  }

  #tookOne(now: number, bytes: number): void {
    this.#taken += 1
    this.#takenBytes += bytes
    const { responseCredits } = this.#context.settings
    const more = this.#taken + responseCredits - this.#granted
    // Half a window at a time: fewer messages, and the replica never runs dry for a reader that keeps up. What is large goes
    // by itself, because the replica keeps to a window of bytes too.
    const isDue = more >= responseCredits / 2 || this.#takenBytes >= INLINE_LIMIT_BYTES
    if (this.#call.hasEnded || !isDue) return
    this.grant()
    this.#call.progressed(now)
  }
}

/** Makes the response for the reader. */
function toStepResponse({ message, bytes }: ArrivingResponse): StepResponse {
  const { index, final, outputs, parameters, times } = message
  return {
    index,
    final,
    outputs: outputs.map((output, i) => ({ ...output, data: bytes[i] ?? new Uint8Array() })),
    parameters,
    ...(times !== undefined && { times: { ...times, transferNs: 0 } }),
  }
}

import type { ServeError } from '@tutti/errors'
import { fromWireError, INLINE_LIMIT_BYTES, type TensorPart } from '@tutti/protocol'
import { executedBefore, type StepResponse } from '@tutti/tensor'
import type { ByteBudget } from '../transfers/byte-budget.ts'
import type { AnnouncedTransfer } from '../transfers/incoming-transfers.ts'
import { arrivedBytes, transferBytes } from '../transfers/split-tensors.ts'
import type { ArrivingResponse, CallOptions, OpenCall, ResponseMessage } from './call.ts'
import { outOfTurn, stalled, tooLargeResponse } from './call-errors.ts'

/** Options that the arrivals need of the calling side. */
export interface ArrivalOptions extends CallOptions {
  readonly budget: ByteBudget
  /** The final response is with the reader. */
  finish(now: number, call: OpenCall): void
  /** Ends the call with an error and tells the replica. */
  fail(now: number, call: OpenCall, error: ServeError): void
}

/**
 * Brings the responses of calls to their readers: in order, with their transfers put together, within the bytes that this
 * process takes. A response for which there is no memory waits; those behind it wait with it.
 */
export class ResponseArrivals {
  readonly #o: ArrivalOptions
  /** Calls whose next response waits for memory, longest first. */
  readonly #waiting = new Set<OpenCall>()

  constructor(o: ArrivalOptions) {
    this.#o = o
  }

  /** Takes a response message of the call. One that is there already changes nothing. */
  add(now: number, call: OpenCall, message: ResponseMessage): void {
    const { index } = message
    if (index < call.nextToDeliver || call.responses.has(index)) return
    if (index >= call.granted || index > (call.finalIndex ?? Number.POSITIVE_INFINITY)) {
      this.#o.fail(now, call, outOfTurn(call, index))
      return
    }
    if (message.final) call.finalIndex = index
    const bytes = message.parts.map(arrivedBytes)
    const missing = bytes.filter((one) => one === undefined).length
    call.responses.set(index, { message, bytes, missing, reserved: 0 })
    this.#advance(now, call)
  }

  /** The call has ended: gives back what its responses have reserved. */
  forget(now: number, call: OpenCall): void {
    this.#waiting.delete(call)
    for (const response of call.responses.values()) this.#letGo(now, call, response)
    call.responses.clear()
    this.#retryWaiting(now)
  }

  #advance(now: number, call: OpenCall): void {
    for (;;) {
      const next = call.responses.get(call.nextToOpen)
      if (next === undefined) break
      if (!this.#open(now, call, next)) return
      call.nextToOpen += 1
      call.waitingSince = undefined
      this.#waiting.delete(call)
    }
    this.#deliver(now, call)
  }

  /** Lets the transfers of a response begin. @returns false if it has to wait, or the call has failed. */
  #open(now: number, call: OpenCall, response: ArrivingResponse): boolean {
    const { message, bytes } = response
    if (response.missing === 0) return true
    const { budget, incoming, settings } = this.#o
    const size = transferBytes(message.parts)
    const most = budget.largest
    const isTooLarge = (one: TensorPart): boolean =>
      transferBytes([one]) > settings.tensorBytesPerMember
    if (size > most || message.parts.some(isTooLarge)) {
      this.#o.fail(
        now,
        call,
        tooLargeResponse(call, size, Math.min(settings.tensorBytesPerMember, most)),
      )
      return false
    }
    if (!budget.take(call.to, size)) {
      call.waitingSince ??= now
      this.#waiting.add(call)
      return false
    }
    response.reserved = size
    const announced = this.#announce(call, response, bytes)
    const numbers = new Set(announced.map(({ transfer }) => transfer))
    const isTaken = announced.some(({ from, transfer }) => incoming.has(from, transfer))
    if (isTaken || numbers.size < announced.length) {
      this.#o.fail(now, call, outOfTurn(call, message.index))
      return false
    }
    const credits = incoming.open(now, announced)
    if (credits.length > 0) this.#o.send(call.to, { type: 'credit', call: call.call, credits })
    return true
  }

  #announce(
    call: OpenCall,
    response: ArrivingResponse,
    bytes: (Uint8Array | undefined)[],
  ): AnnouncedTransfer[] {
    const announced: AnnouncedTransfer[] = []
    for (const [i, part] of response.message.parts.entries()) {
      if (part.kind === 'inline' || part.size === 0) continue
      announced.push({
        from: call.to,
        call: call.call,
        transfer: part.transfer,
        size: part.size,
        isUnasked: part.isUnasked,
        onArrived: (now, arrived) => {
          bytes[i] = arrived
          response.missing -= 1
          call.heardAt = now
          this.#deliver(now, call)
        },
        onStalled: (now) => this.#o.fail(now, call, stalled(call, response.message.index)),
      })
    }
    return announced
  }

  #deliver(now: number, call: OpenCall): void {
    while (call.nextToDeliver < call.nextToOpen) {
      const response = call.responses.get(call.nextToDeliver)
      if (response === undefined || response.missing > 0) return
      call.responses.delete(call.nextToDeliver)
      call.nextToDeliver += 1
      const { reserved, message } = response
      // A response that the reader holds stays reserved until it takes it, so that slow readers bound what comes.
      if (message.final) this.#o.finish(now, call)
      this.#hand(now, call, response, reserved)
    }
  }

  /** Hands a response to the reader; its bytes stay reserved until the reader is ready to go beyond it. */
  #hand(now: number, call: OpenCall, response: ArrivingResponse, reserved: number): void {
    const { sink } = call.listener
    const { error, times } = response.message
    if (error === undefined) sink.send(toStepResponse(response))
    else {
      const failure = fromWireError(error)
      sink.fail(failure, executedBefore(failure), times && { ...times, transferNs: 0 })
    }
    let size = 0
    for (const one of response.bytes) size += one?.byteLength ?? 0
    const taken = (at: number): void => {
      if (reserved > 0) this.#o.budget.give(call.to, reserved)
      this.#taken(at, call, size)
      this.#retryWaiting(at)
    }
    const ready = call.hasEnded ? undefined : sink.ready?.()
    if (ready === undefined) taken(now)
    else void ready.then(() => taken(this.#o.clock.now()))
  }

  /** Tells the replica how many responses the reader has taken, by how many it may send in all, and how many are here. */
  grant(call: OpenCall): void {
    call.takenBytes = 0
    call.granted = call.taken + this.#o.settings.responseCredits
    let received = call.nextToOpen
    while (call.responses.has(received)) received += 1
    const responses = call.granted
    this.#o.send(call.to, { type: 'response-credit', call: call.call, responses, received })
  }

  #taken(now: number, call: OpenCall, bytes: number): void {
    call.taken += 1
    call.takenBytes += bytes
    const { responseCredits } = this.#o.settings
    const more = call.taken + responseCredits - call.granted
    // Half a window at a time: fewer messages, and the replica never runs dry for a reader that keeps up. What is large goes
    // by itself, because the replica keeps to a window of bytes too.
    const isDue = more >= responseCredits / 2 || call.takenBytes >= INLINE_LIMIT_BYTES
    if (call.hasEnded || !isDue) return
    this.grant(call)
    call.progressAt = now
  }

  #letGo(now: number, call: OpenCall, response: ArrivingResponse): void {
    for (const part of response.message.parts) {
      if (part.kind === 'transfer') this.#o.incoming.drop(now, call.to, part.transfer)
    }
    response.missing = 0
    this.#o.budget.give(call.to, response.reserved)
    response.reserved = 0
  }

  #retryWaiting(now: number): void {
    for (const call of this.#waiting) this.#advance(now, call)
  }
}

/** The response for the reader. */
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

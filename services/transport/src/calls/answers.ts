import { ServeError } from '@tutti/errors'
import { toWireError } from '@tutti/protocol'
import { outputBytes, ReadyGate } from '@tutti/tensor'
import { splitTensors, unaskedBytes } from '../transfers/split-tensors.ts'
import type { CallOptions, HeldTransfer, QueuedResponse, TakenCall, WireResponse } from './call.ts'
import { callDetails, callError, errorResponse, readsTooSlowly } from './call-errors.ts'

/** Options that the answers need of the answering side. */
export interface AnswerOptions extends Omit<CallOptions, 'incoming'> {
  readonly self: string
}

/**
 * Sends the responses of accepted calls: in order, as many as the caller has credit for, and no more bytes ahead of its reader
 * than fit the window. What waits, and the tensors that the caller has not read yet, are held and bounded; a call that would
 * hold more ends with OVERLOADED. An execution that waits for `ready` before each response never gets that far.
 */
export class Answers {
  readonly #o: AnswerOptions
  #heldBytes = 0

  constructor(o: AnswerOptions) {
    this.#o = o
  }

  /** Bytes of outputs that are held for callers. */
  get heldBytes(): number {
    return this.#heldBytes
  }

  /** Takes a response. After the final one it takes no more. */
  add(now: number, call: TakenCall, response: WireResponse): void {
    if (call.hasFinal) return
    const problem = this.#problem(call, response)
    if (problem !== undefined) {
      this.#endWith(now, call, problem)
      return
    }
    call.hasFinal = response.final
    // It may have to wait for credit, and its transfers for the caller.
    call.queue.push({ ...response, giveBack: response.retain?.() })
    this.#hold(call, outputBytes(response))
    this.flush(now, call)
    if (response.final) call.gate?.open()
  }

  /** As ResponseSink's: undefined if a further response would go out at once, or be dropped. */
  ready(call: TakenCall): Promise<void> | undefined {
    if (this.maySendNow(call)) return undefined
    call.gate ??= new ReadyGate()
    return call.gate.wait()
  }

  maySendNow(call: TakenCall): boolean {
    return call.hasFinal || (call.queue.length === 0 && this.#maySend(call))
  }

  /** The caller allows that many responses in all, and has read those below what it allowed first. */
  grant(now: number, call: TakenCall, responses: number): void {
    if (responses <= call.granted) return
    call.granted = responses
    call.takenAt = now
    const read = responses - call.offeredCredits
    while (call.sent - call.unread.length < read) {
      const bytes = call.unread.shift()
      if (bytes === undefined) break
      call.unreadBytes -= bytes
    }
    for (const [index, { transfers, giveBack }] of call.held) {
      if (index >= read) break
      for (const { transfer, size } of transfers) {
        this.#o.outgoing.drop(transfer)
        call.unsent.delete(transfer)
        this.#hold(call, -size)
      }
      call.held.delete(index)
      giveBack?.()
    }
    this.flush(now, call)
  }

  /** Sends what the caller has credit for. */
  flush(now: number, call: TakenCall): void {
    while (call.queue.length > 0 && this.#maySend(call)) {
      const response = call.queue.shift()
      if (response !== undefined) this.#send(now, call, response)
    }
    if (this.maySendNow(call)) call.gate?.open()
  }

  /** Lets go of all that is held for the call. */
  forget(call: TakenCall): void {
    for (const { transfers, giveBack } of call.held.values()) {
      for (const { transfer } of transfers) this.#o.outgoing.drop(transfer)
      giveBack?.()
    }
    call.held.clear()
    call.unsent.clear()
    for (const { giveBack } of call.queue.splice(0)) giveBack?.()
    call.hasFinal = true
    call.gate?.open()
    this.#hold(call, -call.heldBytes)
  }

  #maySend(call: TakenCall): boolean {
    const { responseBytes, heldResponses } = this.#o.settings
    // A caller may grant any number of responses, but not that we remember them all.
    const isAhead = call.unreadBytes >= responseBytes || call.unread.length >= heldResponses
    return call.sent < call.granted && !isAhead
  }

  #problem(call: TakenCall, response: WireResponse): ServeError | undefined {
    const { self, settings } = this.#o
    const { tensorBytes, tensorBytesPerMember, heldResponses } = settings
    for (const { name, data } of response.outputs) {
      if (data.byteLength <= tensorBytesPerMember) continue
      const text = `output "${name}": ${data.byteLength} bytes on the way to '${call.from}', want at most ${tensorBytesPerMember}`
      return callError('MESSAGE_TOO_LARGE', self, call.envelope, text)
    }
    // One response passes whatever it weighs, else a large answer could never be given.
    const isFirst = call.queue.length === 0 && call.held.size === 0
    const bytes = this.#heldBytes + outputBytes(response)
    if (isFirst || (bytes <= tensorBytes && call.queue.length < heldResponses)) return undefined
    return readsTooSlowly(self, call, bytes, settings)
  }

  /** Drops the responses that wait; the error is the next response, and the last. */
  #endWith(now: number, call: TakenCall, error: ServeError): void {
    for (const waiting of call.queue.splice(0)) {
      this.#hold(call, -outputBytes(waiting))
      waiting.giveBack?.()
    }
    call.hasFinal = true
    call.queue.push({ ...errorResponse(call.sent, error), giveBack: undefined })
    call.abort.abort(error)
    this.flush(now, call)
    call.gate?.open()
  }

  #send(now: number, call: TakenCall, response: QueuedResponse): void {
    const opened: HeldTransfer[] = []
    const tensors = response.outputs.map((output) => output.data)
    const limits = this.#o.inlineLimits()
    const parts = splitTensors(tensors, limits, call.unaskedLeft, (bytes, isUnasked) => {
      const onProgress = (at: number, isWhollySent: boolean): void => {
        call.takenAt = at
        call.sentAt = at
        if (isWhollySent) call.unsent.delete(transfer)
      }
      const { retain } = response
      const to = call.from
      const transfer = this.#o.outgoing.open({ to, bytes, retain, isUnasked, onProgress })
      opened.push({ transfer, size: bytes.byteLength })
      return transfer
    })
    const { error, times } = response
    try {
      this.#o.send(call.from, {
        type: 'response',
        call: call.call,
        index: call.sent,
        final: response.final,
        outputs: response.outputs,
        parts,
        parameters: response.parameters,
        ...(error !== undefined && { error: toWireError(error) }),
        ...(times !== undefined && { times }),
      })
    } catch (problem) {
      for (const { transfer } of opened) this.#o.outgoing.drop(transfer)
      this.#hold(call, -outputBytes(response))
      response.giveBack?.()
      const details = callDetails(this.#o.self, call.envelope)
      this.#endWith(now, call, ServeError.from(problem).withDetails(details))
      return
    }
    call.unaskedLeft -= unaskedBytes(parts)
    call.isSaid = true
    this.#sent(now, call, response, opened)
  }

  #sent(
    now: number,
    call: TakenCall,
    response: QueuedResponse,
    opened: readonly HeldTransfer[],
  ): void {
    let transferred = 0
    for (const { transfer, size } of opened) {
      call.unsent.add(transfer)
      transferred += size
    }
    this.#hold(call, transferred - outputBytes(response))
    if (opened.length === 0) response.giveBack?.()
    else call.held.set(call.sent, { transfers: opened, giveBack: response.giveBack })
    const bytes = outputBytes(response)
    call.unread.push(bytes)
    call.unreadBytes += bytes
    call.sent += 1
    call.sentAt = now
    call.isFinalSent = response.final
  }

  #hold(call: TakenCall, bytes: number): void {
    call.heldBytes += bytes
    this.#heldBytes += bytes
  }
}

import type { ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import type { EndpointSettings } from '../endpoint-settings.ts'
import { ByteBudget } from '../transfers/byte-budget.ts'
import { transferBytes } from '../transfers/split-tensors.ts'
import type { Offer } from './call.ts'
import { callError } from './call-errors.ts'
import type { TakenCall } from './taken-call.ts'

/** The parts of a member that decide whether it takes a call. */
export interface CallSlotsContext {
  readonly self: string
  readonly settings: EndpointSettings
  /** True if a transfer of that number is on its way from the caller already. */
  readonly isExpected: (from: string, transfer: number) => boolean
  /** Bytes of answers that callers have not read. */
  readonly heldBytes: () => number
}

/** Bounds of what the calls that a member answers may take of it: slots, and bytes of inputs. */
export class CallSlots {
  readonly #context: CallSlotsContext
  readonly #budget: ByteBudget
  /** Questions have a bound of their own, so that work does not keep a member from answering them. */
  readonly #taken = { calls: 0, questions: 0 }
  #isDraining = false

  constructor(context: CallSlotsContext) {
    this.#context = context
    const { tensorBytes, tensorBytesPerMember } = context.settings
    this.#budget = new ByteBudget(tensorBytes, tensorBytesPerMember)
  }

  get reservedBytes(): number {
    return this.#budget.inUse
  }

  get freeBytes(): number {
    return this.#budget.free
  }

  get freeSlots(): number {
    return Math.max(0, this.#context.settings.maxCalls - this.#taken.calls)
  }

  /** Takes no new work from now on; questions are answered. */
  drain(): void {
    this.#isDraining = true
  }

  /**
   * Takes a slot and reserves bytes for the inputs.
   *
   * @param isRunning - whether an execution of the same call still has its slot.
   * @returns why it cannot; undefined if it has. A problem that stays comes before one that may pass.
   */
  take(offer: Offer, isRunning: boolean): ServeError | undefined {
    const kind = slotKind(offer.envelope)
    const bytes = transferBytes(offer.parts)
    const problem =
      this.#announcementProblem(offer, bytes) ??
      this.#slotProblem(offer, kind, isRunning) ??
      this.#reserve(offer, bytes)
    if (problem === undefined) this.#taken[kind] += 1
    return problem
  }

  /** Gives the bytes of the call's inputs back: they are no longer needed. */
  giveBytes({ from, reserved }: Pick<TakenCall, 'from' | 'reserved'>): void {
    if (reserved > 0) this.#budget.give(from, reserved)
  }

  giveSlot({ envelope }: Pick<TakenCall, 'envelope'>): void {
    this.#taken[slotKind(envelope)] -= 1
  }

  #announcementProblem(offer: Offer, bytes: number): ServeError | undefined {
    const { from, parts, envelope } = offer
    const { self, isExpected } = this.#context
    const transfers = parts.flatMap((part) => (part.kind === 'transfer' ? [part.transfer] : []))
    const isTwice =
      new Set(transfers).size < transfers.length || transfers.some((one) => isExpected(from, one))
    if (isTwice || offer.responseCredits === 0) {
      const what = isTwice ? 'a transfer is announced twice' : 'no response is granted'
      const text = `offer to replica '${self}': ${what}`
      return callError({ reason: 'MALFORMED_MESSAGE', replica: self, envelope, text })
    }
    if (bytes === 0) return undefined
    // All inputs of one call, and so each of them.
    const most = this.#budget.largest
    if (bytes <= most) return undefined
    const text = `inputs of ${bytes} bytes on the way to replica '${self}', want at most ${most}`
    return callError({ reason: 'MESSAGE_TOO_LARGE', replica: self, envelope, text })
  }

  #slotProblem(
    { envelope }: Offer,
    kind: 'calls' | 'questions',
    isRunning: boolean,
  ): ServeError | undefined {
    const { self, settings } = this.#context
    if (this.#isDraining && kind === 'calls') {
      return callError({
        reason: 'SERVER_STOPPING',
        replica: self,
        envelope,
        text: `replica '${self}' is going away`,
      })
    }
    const maxCalls = kind === 'questions' ? settings.maxAsks : settings.maxCalls
    if (this.#taken[kind] >= maxCalls || isRunning) {
      const text = `replica '${self}' has no free slot, it takes ${maxCalls} calls at the same time`
      return callError({ reason: 'OVERLOADED', replica: self, envelope, text })
    }
    const { remainingMs } = envelope
    if (remainingMs === undefined || remainingMs > 0) return undefined
    return callError({
      reason: 'DEADLINE_EXCEEDED',
      replica: self,
      envelope,
      text: "the request's time is over",
    })
  }

  #reserve({ from, envelope }: Offer, bytes: number): ServeError | undefined {
    const { self, settings } = this.#context
    const heldBytes = this.#context.heldBytes()
    if (heldBytes >= settings.tensorBytes) {
      const text = `replica '${self}' holds ${heldBytes} bytes of unread answers, want less than ${settings.tensorBytes}`
      return callError({ reason: 'OVERLOADED', replica: self, envelope, text })
    }
    if (bytes === 0 || this.#budget.take(from, bytes)) return undefined
    const { inUse, largest } = this.#budget
    const text = `replica '${self}' has no memory for ${bytes} bytes of inputs: ${inUse} are in use, want at most ${settings.tensorBytes}, ${largest} of one caller`
    return callError({ reason: 'OVERLOADED', replica: self, envelope, text })
  }
}

/** True for a call to the member itself instead of a model of it: no model has an empty name. */
export function isQuestion(envelope: Envelope): boolean {
  return envelope.model === ''
}

function slotKind(envelope: Envelope): 'calls' | 'questions' {
  return isQuestion(envelope) ? 'questions' : 'calls'
}

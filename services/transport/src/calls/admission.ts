import { ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import type { PeerSettings } from '../peer-settings.ts'
import { ByteBudget } from '../transfers/byte-budget.ts'
import { largestTransfer, transferBytes } from '../transfers/split-tensors.ts'
import { callDetails, isQuestion } from './call-place.ts'
import type { Offer, TakenCall } from './taken-call.ts'

export interface AdmissionOptions {
  readonly self: string
  readonly settings: PeerSettings
  /** True if a transfer of that number is on its way from the caller already. */
  readonly isExpected: (from: string, transfer: number) => boolean
  /** Bytes of answers that callers have not read. */
  readonly heldBytes: () => number
}

/** What the calls that a peer answers may take of it: slots, and bytes of inputs. */
export class Admission {
  readonly #o: AdmissionOptions
  readonly #budget: ByteBudget
  /** Questions have a bound of their own, so that work does not keep a peer from answering them. */
  readonly #taken = { calls: 0, questions: 0 }
  #isDraining = false

  constructor(o: AdmissionOptions) {
    this.#o = o
    const { receiveBytes, receiveBytesPerSender } = o.settings
    this.#budget = new ByteBudget(receiveBytes, receiveBytesPerSender)
  }

  get reservedBytes(): number {
    return this.#budget.inUse
  }

  get freeBytes(): number {
    return this.#budget.free
  }

  get freeSlots(): number {
    return Math.max(0, this.#o.settings.maxCalls - this.#taken.calls)
  }

  /** Takes no new work from now on; questions are answered. */
  drain(): void {
    this.#isDraining = true
  }

  /**
   * Takes a slot and room for the inputs.
   *
   * @param isRunning - an execution of the same call still has its slot.
   * @returns why not.
   */
  take(offer: Offer, isRunning: boolean): ServeError | undefined {
    const { self, settings, isExpected } = this.#o
    const kind = slotKind(offer.envelope)
    const maxCalls = kind === 'questions' ? settings.maxAsks : settings.maxCalls
    const problem =
      admissionProblem(offer, {
        self,
        isDraining: this.#isDraining && kind === 'calls',
        hasSlot: this.#taken[kind] < maxCalls && !isRunning,
        maxCalls,
        maxTensorBytes: Math.min(settings.maxTensorBytes, this.#budget.largest),
        isExpected: (transfer) => isExpected(offer.from, transfer),
      }) ?? this.#reserve(offer)
    if (problem === undefined) this.#taken[kind] += 1
    return problem
  }

  /** The inputs of the call are not needed any more. */
  giveBytes({ from, reserved }: TakenCall): void {
    this.#budget.give(from, reserved)
  }

  giveSlot({ envelope }: TakenCall): void {
    this.#taken[slotKind(envelope)] -= 1
  }

  #reserve({ from, parts, envelope }: Offer): ServeError | undefined {
    const { self, settings } = this.#o
    const details = callDetails(self, envelope)
    const heldBytes = this.#o.heldBytes()
    if (heldBytes >= settings.heldBytes) {
      const text = `replica '${self}' holds ${heldBytes} bytes of unread answers, want less than ${settings.heldBytes}`
      return new ServeError('OVERLOADED', text, { details })
    }
    const bytes = transferBytes(parts)
    if (this.#budget.take(from, bytes)) return undefined
    const { inUse, largest } = this.#budget
    const text = `replica '${self}' has no room for ${bytes} bytes of inputs: ${inUse} are in use, want at most ${settings.receiveBytes}, ${largest} of one caller`
    return new ServeError('OVERLOADED', text, { details })
  }
}

function slotKind(envelope: Envelope): 'calls' | 'questions' {
  return isQuestion(envelope) ? 'questions' : 'calls'
}

/** How things stand at the replica that an offer comes to. */
interface AdmissionState {
  readonly self: string
  readonly isDraining: boolean
  readonly hasSlot: boolean
  /** Calls, or questions, that are taken at the same time. */
  readonly maxCalls: number
  /** Bytes that all inputs of one call may have. */
  readonly maxTensorBytes: number
  /** True if a transfer of that number is on its way already. */
  readonly isExpected: (transfer: number) => boolean
}

/** Why an offer is refused, or undefined. What can never be is said before what cannot be now. */
function admissionProblem(offer: Offer, state: AdmissionState): ServeError | undefined {
  const { envelope, parts } = offer
  const { self } = state
  const details = callDetails(self, envelope)
  const transfers = parts.flatMap((part) => (part.kind === 'transfer' ? [part.transfer] : []))
  const isTwice = new Set(transfers).size < transfers.length || transfers.some(state.isExpected)
  if (isTwice || offer.responseCredits === 0) {
    const what = isTwice ? 'a transfer is announced twice' : 'no response is granted'
    return new ServeError('MALFORMED_MESSAGE', `offer to replica '${self}': ${what}`, { details })
  }
  const bytes = transferBytes(parts)
  if (bytes > state.maxTensorBytes || largestTransfer(parts) > state.maxTensorBytes) {
    const text = `inputs of ${bytes} bytes on the way to replica '${self}', want at most ${state.maxTensorBytes}`
    return new ServeError('MESSAGE_TOO_LARGE', text, { details })
  }
  if (state.isDraining) {
    return new ServeError('SERVER_STOPPING', `replica '${self}' is going away`, { details })
  }
  if (!state.hasSlot) {
    const text = `replica '${self}' has no free slot, it takes ${state.maxCalls} calls at the same time`
    return new ServeError('OVERLOADED', text, { details })
  }
  const { remainingMs } = envelope
  if (remainingMs !== undefined && remainingMs <= 0) {
    return new ServeError('DEADLINE_EXCEEDED', "the request's time is over", { details })
  }
  return undefined
}

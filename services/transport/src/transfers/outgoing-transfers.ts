import type { TransferCredit } from '@tutti/protocol'
import type { Lent } from '@tutti/tensor'

/** Sizes of pieces that the broker takes now, in bytes. */
export interface PieceLimits {
  /** Bytes up to which a transfer goes as one piece. */
  readonly wholeBytes: number
  readonly chunkBytes: number
}

/** A piece to send; `bytes` is a view of the tensor. */
export interface Piece {
  readonly to: string
  readonly transfer: number
  readonly offset: number
  readonly total: number
  readonly bytes: Uint8Array
  /** Retains the tensor's memory for a reader that may read the piece after the transfer was dropped. */
  readonly retain: Lent['retain']
}

/** A tensor to send. */
export interface OutgoingTensor {
  readonly to: string
  /** Viewed until the transfer is dropped. */
  readonly bytes: Uint8Array
  readonly retain: Lent['retain']
  /** True if the receiver takes all of it before it grants credit. */
  readonly isUnasked?: boolean
  /** Called after each piece, with true once all bytes have been handed out. */
  readonly onProgress: (now: number, isWhollySent: boolean) => void
}

interface Outgoing extends OutgoingTensor {
  readonly transfer: number
  sent: number
  upTo: number
  /** Part of `upTo` that the receiver has granted. */
  granted: number
  hasResent: boolean
  isReady: boolean
}

/**
 * The tensors that this process sends as transfers: never beyond what the receiver grants or takes unasked, all receivers in
 * turn, a piece at a time, so that a cancelled transfer stops between two pieces. Keeps the bytes until the transfer is dropped,
 * because the receiver may ask once for what got lost.
 */
export class OutgoingTransfers {
  readonly #limits: () => PieceLimits
  readonly #transfers = new Map<number, Outgoing>()
  /** Transfers with credit, in turn. Dropped transfers are left out when their turn comes. */
  readonly #ready: Outgoing[] = []
  #next = 1

  constructor(limits: () => PieceLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#transfers.size
  }

  /** True if `next` would return a piece. */
  get hasNext(): boolean {
    return this.#ready.some((transfer) => this.#transfers.has(transfer.transfer))
  }

  /** Begins a transfer of a tensor. @returns its number. */
  open(tensor: OutgoingTensor): number {
    const transfer = this.#next++
    const upTo = tensor.isUnasked ? tensor.bytes.byteLength : 0
    const state = { sent: 0, upTo, granted: 0, hasResent: false, isReady: false }
    const outgoing = { ...tensor, transfer, ...state }
    this.#transfers.set(transfer, outgoing)
    this.#enqueue(outgoing)
    return transfer
  }

  /** Takes credits from a receiver; for transfers to others, or smaller than before, they change nothing. @returns true if one grew. */
  credit(from: string, credits: readonly TransferCredit[]): boolean {
    let hasGrown = false
    for (const { transfer, upTo } of credits) {
      const outgoing = this.#transfers.get(transfer)
      if (outgoing === undefined || outgoing.to !== from || upTo <= outgoing.granted) continue
      const before = outgoing.upTo
      outgoing.granted = Math.min(upTo, outgoing.bytes.byteLength)
      outgoing.upTo = Math.max(before, outgoing.granted)
      hasGrown ||= outgoing.upTo > before
      this.#enqueue(outgoing)
    }
    return hasGrown
  }

  /** Sends a transfer again from `offset` on, under credits; once for each transfer, and only if its receiver asks. */
  resend(from: string, transfer: number, offset: number): void {
    const outgoing = this.#transfers.get(transfer)
    if (outgoing === undefined || outgoing.to !== from || outgoing.hasResent) return
    outgoing.hasResent = true
    outgoing.sent = Math.min(outgoing.sent, offset)
    outgoing.upTo = outgoing.granted
    this.#enqueue(outgoing)
  }

  drop(transfer: number): void {
    this.#transfers.delete(transfer)
  }

  /** Takes the next piece to send; undefined if nothing may be sent now. */
  next(now: number): Piece | undefined {
    for (let outgoing = this.#ready.shift(); outgoing; outgoing = this.#ready.shift()) {
      outgoing.isReady = false
      // Dropped, or it was let back to its credits.
      if (!this.#transfers.has(outgoing.transfer) || outgoing.sent >= outgoing.upTo) continue
      const { to, transfer, sent: offset, bytes, retain } = outgoing
      const total = bytes.byteLength
      const { wholeBytes, chunkBytes } = this.#limits()
      const most = total <= wholeBytes ? wholeBytes : chunkBytes
      outgoing.sent = Math.min(offset + most, outgoing.upTo)
      this.#enqueue(outgoing)
      outgoing.onProgress(now, outgoing.sent === total)
      const piece = bytes.subarray(offset, outgoing.sent)
      return { to, transfer, offset, total, bytes: piece, retain }
    }
    return undefined
  }

  #enqueue(outgoing: Outgoing): void {
    if (outgoing.isReady || outgoing.sent >= outgoing.upTo) return
    outgoing.isReady = true
    this.#ready.push(outgoing)
  }
}

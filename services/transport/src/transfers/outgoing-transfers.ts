import type { TransferCredit } from '@tutti/protocol'

/** Largest pieces that the broker takes now. */
export interface PieceLimits {
  /** A transfer that is no larger goes as one piece. */
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
}

interface Outgoing {
  readonly to: string
  readonly transfer: number
  readonly bytes: Uint8Array
  readonly onProgress: (now: number, isWhollySent: boolean) => void
  sent: number
  upTo: number
  hasResent: boolean
  isReady: boolean
}

/**
 * What this process sends as transfers: never beyond the receiver's credits, all receivers in turn, a piece at a time, so that
 * a cancelled transfer stops between two pieces. Keeps the bytes until the transfer is dropped, because the receiver may ask
 * once for what got lost.
 */
export class OutgoingTransfers {
  readonly #limits: () => PieceLimits
  readonly #transfers = new Map<number, Outgoing>()
  /** Those with credit, in turn. Dropped ones are left out when their turn comes. */
  readonly #ready: Outgoing[] = []
  #next = 1

  constructor(limits: () => PieceLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#transfers.size
  }

  /** True if `next` has a piece. */
  get hasNext(): boolean {
    return this.#ready.some((transfer) => this.#transfers.has(transfer.transfer))
  }

  /**
   * @param bytes - viewed until the transfer is dropped.
   * @param onProgress - called after each piece, with true once all bytes have been handed out.
   * @returns its number.
   */
  open(
    to: string,
    bytes: Uint8Array,
    onProgress: (now: number, isWhollySent: boolean) => void,
  ): number {
    const transfer = this.#next++
    this.#transfers.set(transfer, {
      to,
      transfer,
      bytes,
      onProgress,
      sent: 0,
      upTo: 0,
      hasResent: false,
      isReady: false,
    })
    return transfer
  }

  /** Takes credits of the receiver; those of others, and smaller ones than before, change nothing. @returns true if some grew. */
  credit(from: string, credits: readonly TransferCredit[]): boolean {
    let hasGrown = false
    for (const { transfer, upTo } of credits) {
      const outgoing = this.#transfers.get(transfer)
      if (outgoing === undefined || outgoing.to !== from || upTo <= outgoing.upTo) continue
      const before = outgoing.upTo
      outgoing.upTo = Math.min(upTo, outgoing.bytes.byteLength)
      hasGrown ||= outgoing.upTo > before
      this.#enqueue(outgoing)
    }
    return hasGrown
  }

  /** Goes back to `offset`, once for each transfer and for its receiver only. */
  resend(from: string, transfer: number, offset: number): void {
    const outgoing = this.#transfers.get(transfer)
    if (outgoing === undefined || outgoing.to !== from || outgoing.hasResent) return
    outgoing.hasResent = true
    outgoing.sent = Math.min(outgoing.sent, offset)
    this.#enqueue(outgoing)
  }

  drop(transfer: number): void {
    this.#transfers.delete(transfer)
  }

  /** The next piece, or undefined if nothing may be sent now. */
  next(now: number): Piece | undefined {
    for (let outgoing = this.#ready.shift(); outgoing; outgoing = this.#ready.shift()) {
      outgoing.isReady = false
      if (!this.#transfers.has(outgoing.transfer)) continue
      const { to, transfer, sent: offset, bytes } = outgoing
      const total = bytes.byteLength
      const { wholeBytes, chunkBytes } = this.#limits()
      const most = total <= wholeBytes ? wholeBytes : chunkBytes
      outgoing.sent = Math.min(offset + most, outgoing.upTo)
      this.#enqueue(outgoing)
      outgoing.onProgress(now, outgoing.sent === total)
      return { to, transfer, offset, total, bytes: bytes.subarray(offset, outgoing.sent) }
    }
    return undefined
  }

  #enqueue(outgoing: Outgoing): void {
    if (outgoing.isReady || outgoing.sent >= outgoing.upTo) return
    outgoing.isReady = true
    this.#ready.push(outgoing)
  }
}

import type { Chunk, ChunkHeader, TransferCredit } from '@tutti/protocol'
import type { FlowSettings } from '../endpoint-settings.ts'
import type { SendMessage } from '../send-message.ts'
import { ByteBudget } from './byte-budget.ts'
import { ByteRanges } from './byte-ranges.ts'

/** A transfer that a message has announced. Its bytes are reserved already. */
export interface AnnouncedTransfer {
  readonly from: string
  readonly call: number
  readonly transfer: number
  readonly size: number
  /** True if its bytes come without credit; absent otherwise. */
  readonly isUnasked?: boolean | undefined
  /** Called once all bytes are there; the receiver owns them. */
  readonly onArrived: (now: number, bytes: Uint8Array) => void
  /** Called when nothing has come for `stallMs`, twice. */
  readonly onStalled: (now: number) => void
}

/** The place of a chunk in its tensor. */
export interface ChunkPlace {
  /** View of the tensor, as long as the chunk. */
  readonly into: Uint8Array
  /** Callback for when all bytes of the chunk are in `into`. */
  readonly arrived: (now: number) => void
}

interface Incoming {
  readonly from: string
  readonly transfer: number
  readonly size: number
  /** Undefined for an early one: its message may come later, over another connection. */
  announced: AnnouncedTransfer | undefined
  readonly buffer: Uint8Array
  readonly ranges: ByteRanges
  granted: number
  /** Bytes that it has of those for what comes unasked; the others count in the window of their sender. */
  readonly pooled: number
  /** Whether what came of it was thrown away, and is to be sent again once it is granted. */
  isThrown: boolean
  hasAskedAgain: boolean
  progressAt: number
}

interface Sender {
  readonly transfers: Map<number, Incoming>
  /** Transfers without credit for all their bytes, in turn. */
  readonly waiting: Set<Incoming>
  /** Bytes granted and not arrived, of all its transfers. */
  outstanding: number
}

/** Early transfers, and those whose chunks are no longer wanted, that are remembered: as long as a chunk may be late. */
const MOST_EARLY = 1024

/**
 * Puts transfers together, each in one buffer of its own. Grants credits so that the bytes under way stay within the bounds for
 * each sender and for all; asks once for what does not come. Chunks that are beyond the credit or there already change nothing.
 * What comes unasked has a part of both bounds, and memory within it also before its message is here.
 */
export class IncomingTransfers {
  readonly #settings: FlowSettings
  readonly #send: SendMessage
  readonly #senders = new Map<string, Sender>()
  /** Transfers that nobody has opened yet, by sender and number, in the order in which they came. */
  readonly #early = new Map<string, Incoming>()
  readonly #unasked: ByteBudget
  /** Time of the last event. */
  #now = 0

  constructor(settings: FlowSettings, send: SendMessage) {
    this.#settings = settings
    this.#send = send
    this.#unasked = new ByteBudget(mostUnaskedBytes(settings), settings.creditBytes)
  }

  /** Number of transfers that are announced and have not arrived. */
  get size(): number {
    let size = 0
    for (const sender of this.#senders.values()) size += sender.transfers.size
    return size
  }

  /** Number of transfers that came before their message or whose chunks are not wanted; each is remembered for a while. */
  get earlySize(): number {
    return this.#early.size
  }

  /** Bytes that senders may have under way to us. */
  get outstanding(): number {
    let bytes = this.#unasked.inUse
    for (const sender of this.#senders.values()) bytes += sender.outstanding
    return bytes
  }

  /** True if such a transfer is expected already; a sender must not use a number twice. */
  has(from: string, transfer: number): boolean {
    return this.#senders.get(from)?.transfers.has(transfer) ?? false
  }

  /**
   * Expects transfers of one call. @returns the first credits, which the caller of this sends; further ones are sent from here.
   */
  open(now: number, announced: readonly AnnouncedTransfer[]): TransferCredit[] {
    const first = announced[0]
    if (first === undefined) return []
    this.#now = now
    let sender = this.#senders.get(first.from)
    if (sender === undefined) {
      sender = { transfers: new Map(), waiting: new Set(), outstanding: 0 }
      this.#senders.set(first.from, sender)
    }
    const opened = announced.map((one) => this.#adopt(one))
    for (const incoming of opened) {
      sender.transfers.set(incoming.transfer, incoming)
      if (incoming.granted === 0) sender.waiting.add(incoming)
      else if (incoming.isThrown) this.#askAgain(now, incoming)
    }
    const grown = this.#grant(now, sender)
    this.#sayCredits(grown.filter((one) => !opened.includes(one)))
    for (const incoming of opened) {
      // A transfer that was early may be all there; what one brings about may end the call, and so drop the next.
      const isOpen = sender.transfers.get(incoming.transfer) === incoming
      if (isOpen && isComplete(incoming)) this.#deliver(now, sender, incoming)
    }
    return grown.filter((one) => opened.includes(one)).map(toCredit)
  }

  /** Adopts the early transfer that the message is about, or makes a new one. */
  #adopt(one: AnnouncedTransfer): Incoming {
    const { from, transfer, size, isUnasked = false } = one
    const early = this.#early.get(earlyKey(from, transfer))
    this.#early.delete(earlyKey(from, transfer))
    if (early !== undefined && early.size === size && isUnasked && !early.isThrown) {
      early.announced = one
      early.progressAt = this.#now
      return early
    }
    if (early !== undefined) this.#unasked.give(from, early.pooled)
    const pooled = isUnasked && this.#unasked.take(from, size) ? size : 0
    const isThrown = isUnasked && early !== undefined
    return { ...this.#place(from, transfer, size, pooled), announced: one, isThrown }
  }

  #place(from: string, transfer: number, size: number, pooled: number): Incoming {
    return {
      from,
      transfer,
      size,
      announced: undefined,
      // Memory of its own: a pooled buffer would keep its neighbours alive.
      buffer: Buffer.allocUnsafeSlow(size),
      ranges: new ByteRanges(),
      granted: pooled,
      pooled,
      isThrown: false,
      hasAskedAgain: false,
      progressAt: this.#now,
    }
  }

  /** @returns where the bytes of a transfer go whose message is not here; undefined if there is no memory. */
  #openEarly({ from, transfer, total }: ChunkHeader): Incoming | undefined {
    if (this.#early.size >= MOST_EARLY) return undefined
    if (total === 0 || !this.#unasked.take(from, total)) {
      this.throwAway(from, transfer)
      return undefined
    }
    const early = this.#place(from, transfer, total, total)
    this.#early.set(earlyKey(from, transfer), early)
    return early
  }

  /**
   * Discards the chunks of a transfer that nobody has opened. If the transfer is opened later, its chunks are requested again.
   */
  throwAway(from: string, transfer: number): void {
    const key = earlyKey(from, transfer)
    this.#unasked.give(from, this.#early.get(key)?.pooled ?? 0)
    this.#early.delete(key)
    if (this.#early.size >= MOST_EARLY) return
    this.#early.set(key, { ...this.#place(from, transfer, 0, 0), isThrown: true })
  }

  /** Lists what is granted for transfers of a call now, to say it again. */
  credits(from: string, call: number): TransferCredit[] {
    const transfers = [...(this.#senders.get(from)?.transfers.values() ?? [])]
    const ours = transfers.filter((one) => one.announced?.call === call && one.granted > 0)
    return ours.map(toCredit)
  }

  /**
   * Finds the place of a chunk in its tensor, before a byte of it is there.
   *
   * @param size - bytes of the chunk.
   * @returns undefined if it changes nothing.
   */
  place(header: ChunkHeader, size: number): ChunkPlace | undefined {
    const { from, transfer, offset, total } = header
    const incoming =
      this.#senders.get(from)?.transfers.get(transfer) ??
      this.#early.get(earlyKey(from, transfer)) ??
      this.#openEarly(header)
    const end = offset + size
    if (incoming === undefined || incoming.size !== total) return undefined
    if (end > incoming.granted) {
      // It came unasked and finds neither memory of its own nor credit yet.
      if (!incoming.hasAskedAgain) incoming.isThrown = incoming.announced?.isUnasked === true
      return undefined
    }
    if (!incoming.ranges.lacks(offset, end)) return undefined
    const arrived = (now: number): void => this.#arrived(now, incoming, offset, end)
    return { into: incoming.buffer.subarray(offset, end), arrived }
  }

  /** Takes a chunk whose bytes are here already; copies them. */
  chunk(now: number, { bytes, ...header }: Chunk): void {
    const place = this.place(header, bytes.byteLength)
    place?.into.set(bytes)
    place?.arrived(now)
  }

  #arrived(now: number, incoming: Incoming, offset: number, end: number): void {
    this.#now = now
    const { from, transfer, ranges } = incoming
    const sender = this.#senders.get(from)
    const before = ranges.count
    // The transfer may have been dropped meanwhile, and its number be used again.
    if (sender?.transfers.get(transfer) !== incoming) {
      if (this.#early.get(earlyKey(from, transfer)) === incoming) ranges.add(offset, end)
      return
    }
    if (!ranges.add(offset, end)) return
    incoming.progressAt = now
    if (incoming.pooled === 0) sender.outstanding -= ranges.count - before
    this.#deliver(now, sender, incoming)
  }

  /** Hands the bytes over if they are all there, and grants what that makes room for. */
  #deliver(now: number, sender: Sender, incoming: Incoming): void {
    if (isComplete(incoming)) this.#remove(sender, incoming)
    this.#sayCredits(this.#grant(now, sender))
    if (isComplete(incoming)) incoming.announced?.onArrived(now, incoming.buffer)
  }

  drop(now: number, from: string, transfer: number): void {
    const sender = this.#senders.get(from)
    const incoming = sender?.transfers.get(transfer)
    if (sender === undefined || incoming === undefined) return
    this.#now = now
    this.#remove(sender, incoming)
    if (incoming.granted > incoming.ranges.count) this.throwAway(from, transfer)
    this.#sayCredits(this.#grant(now, sender))
  }

  /** Looks after transfers that do not move. */
  tick(now: number): void {
    this.#now = now
    for (const sender of this.#senders.values()) {
      for (const incoming of sender.transfers.values()) {
        // A transfer that has all that it was granted waits for its turn, not for its sender.
        if (incoming.granted === incoming.ranges.count) continue
        if (now - incoming.progressAt < this.#settings.stallMs) continue
        if (incoming.hasAskedAgain) incoming.announced?.onStalled(now)
        else this.#askAgain(now, incoming)
      }
    }
    for (const [key, { from, pooled, progressAt }] of this.#early) {
      if (now - progressAt < this.#settings.stallMs) break
      this.#early.delete(key)
      this.#unasked.give(from, pooled)
    }
  }

  /** Asks again: either a chunk or our credit was lost, so both are sent again. */
  #askAgain(now: number, incoming: Incoming): void {
    this.#sayCredits([incoming])
    this.#askForRest(now, incoming)
  }

  /** Asks for the rest of a transfer. The sender then keeps to credits, also for bytes that it sent unasked. */
  #askForRest(now: number, incoming: Incoming): void {
    const { from, announced, transfer, ranges } = incoming
    incoming.isThrown = false
    incoming.hasAskedAgain = true
    incoming.progressAt = now
    const call = announced?.call ?? 0
    this.#send(from, { type: 'resend', call, transfer, offset: ranges.firstGap })
  }

  #remove(sender: Sender, incoming: Incoming): void {
    this.#unasked.give(incoming.from, incoming.pooled)
    if (incoming.pooled === 0) sender.outstanding -= incoming.granted - incoming.ranges.count
    sender.transfers.delete(incoming.transfer)
    sender.waiting.delete(incoming)
    // Chunks that were asked for again may come twice.
    if (incoming.hasAskedAgain) this.throwAway(incoming.from, incoming.transfer)
    if (sender.transfers.size === 0) this.#senders.delete(incoming.from)
  }

  /**
   * Grants each transfer a piece in turn, so that a small tensor does not wait for a large one. @returns transfers that may send
   * more.
   */
  #grant(now: number, sender: Sender): Incoming[] {
    const { creditBytes, creditTotalBytes, wholeLimitBytes, chunkBytes } = this.#settings
    const total = creditTotalBytes - this.#unasked.inUse
    const share = Math.floor(total / Math.max(1, this.#senders.size))
    const window = Math.min(creditBytes, share)
    const grown = new Set<Incoming>()
    // One message for half a window, instead of one for each piece that has come.
    const isLow = sender.outstanding <= window / 2
    // A set visits what is added while it is visited, so each has its turn until the window is full.
    for (const incoming of sender.waiting) {
      if (incoming.granted > 0 && !isLow && !grown.has(incoming)) break
      const left = incoming.size - incoming.granted
      const more = incoming.size <= wholeLimitBytes ? left : Math.min(chunkBytes, left)
      // A sender may always have one piece under way, however many they are; else it would never get anywhere.
      if (sender.outstanding > 0 && sender.outstanding + more > window) break
      if (incoming.granted === incoming.ranges.count) incoming.progressAt = now
      incoming.granted += more
      sender.outstanding += more
      grown.add(incoming)
      sender.waiting.delete(incoming)
      if (more < left) sender.waiting.add(incoming)
    }
    for (const incoming of grown) if (incoming.isThrown) this.#askForRest(now, incoming)
    return [...grown]
  }

  #sayCredits(grown: readonly Incoming[]): void {
    for (const incoming of grown) {
      const { from, announced } = incoming
      const call = announced?.call ?? 0
      this.#send(from, { type: 'credit', call, credits: [toCredit(incoming)] })
    }
  }
}

/** Computes how much all senders together may have under way unasked: half of all that may be under way. */
export function mostUnaskedBytes({ creditTotalBytes }: FlowSettings): number {
  return Math.floor(creditTotalBytes / 2)
}

function earlyKey(from: string, transfer: number): string {
  return `${transfer} ${from}`
}

function isComplete({ ranges, size }: Incoming): boolean {
  return ranges.count === size
}

function toCredit({ transfer, granted }: Incoming): TransferCredit {
  return { transfer, upTo: granted }
}

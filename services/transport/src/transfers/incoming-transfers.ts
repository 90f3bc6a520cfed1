import type { Chunk, ChunkHeader, TransferCredit } from '@tutti/protocol'
import type { SendMessage } from '../calls/send-message.ts'
import { ByteRanges } from './byte-ranges.ts'

/** The settings that incoming transfers need. */
export interface IncomingSettings {
  readonly chunkBytes: number
  readonly wholeLimitBytes: number
  readonly creditBytes: number
  readonly creditTotalBytes: number
  readonly stallMs: number
}

/** A transfer that a message has announced. Its bytes are reserved already. */
export interface AnnouncedTransfer {
  readonly from: string
  readonly call: number
  readonly transfer: number
  readonly size: number
  /** All bytes are there; the receiver owns them. */
  readonly onArrived: (now: number, bytes: Uint8Array) => void
  /** Nothing has come for the stall time, twice. */
  readonly onStalled: (now: number) => void
}

/** Where a chunk goes. */
export interface ChunkPlace {
  /** As many bytes as the chunk has. */
  readonly into: Uint8Array
  /** They are all there. */
  readonly arrived: (now: number) => void
}

interface Incoming extends AnnouncedTransfer {
  readonly buffer: Uint8Array
  readonly ranges: ByteRanges
  granted: number
  hasAskedAgain: boolean
  progressAt: number
}

interface Sender {
  readonly transfers: Map<number, Incoming>
  /** Those that are not wholly granted, in turn. */
  readonly waiting: Set<Incoming>
  /** Bytes granted and not arrived, of all its transfers. */
  outstanding: number
}

/**
 * Puts transfers together, each in one buffer of its own. Grants credits so that the bytes under way stay within the bounds
 * for each sender and for all; asks once for what does not come. Chunks that were not announced, that are beyond the credit or
 * there already change nothing.
 */
export class IncomingTransfers {
  readonly #settings: IncomingSettings
  readonly #send: SendMessage
  readonly #senders = new Map<string, Sender>()

  constructor(settings: IncomingSettings, send: SendMessage) {
    this.#settings = settings
    this.#send = send
  }

  /** Transfers that have not arrived. */
  get size(): number {
    let size = 0
    for (const sender of this.#senders.values()) size += sender.transfers.size
    return size
  }

  /** Bytes that senders may have under way to us. */
  get outstanding(): number {
    let bytes = 0
    for (const sender of this.#senders.values()) bytes += sender.outstanding
    return bytes
  }

  /** True if such a transfer is expected already; a sender must not use a number twice. */
  has(from: string, transfer: number): boolean {
    return this.#senders.get(from)?.transfers.has(transfer) ?? false
  }

  /** Expects transfers of one call. @returns the first credits, for the message that says so; what they lack follows by itself. */
  open(now: number, announced: readonly AnnouncedTransfer[]): TransferCredit[] {
    const first = announced[0]
    if (first === undefined) return []
    let sender = this.#senders.get(first.from)
    if (sender === undefined) {
      sender = { transfers: new Map(), waiting: new Set(), outstanding: 0 }
      this.#senders.set(first.from, sender)
    }
    for (const one of announced) {
      // Memory of its own: a pooled buffer would keep its neighbours alive.
      const buffer = Buffer.allocUnsafeSlow(one.size)
      const incoming: Incoming = {
        ...one,
        buffer,
        ranges: new ByteRanges(),
        granted: 0,
        hasAskedAgain: false,
        progressAt: now,
      }
      sender.transfers.set(one.transfer, incoming)
      sender.waiting.add(incoming)
    }
    const grown = this.#grant(now, sender)
    const own = new Set(announced.map(({ transfer }) => transfer))
    this.#sayCredits(grown.filter(({ transfer }) => !own.has(transfer)))
    return grown.filter(({ transfer }) => own.has(transfer)).map(toCredit)
  }

  /** What is granted for transfers of a call now, to say it again. */
  credits(from: string, call: number): TransferCredit[] {
    const transfers = [...(this.#senders.get(from)?.transfers.values() ?? [])]
    return transfers.filter((one) => one.call === call && one.granted > 0).map(toCredit)
  }

  /**
   * Finds the place of a chunk in its tensor, before a byte of it is there.
   *
   * @param size - bytes of the chunk.
   * @returns undefined if it changes nothing.
   */
  place({ from, transfer, offset, total }: ChunkHeader, size: number): ChunkPlace | undefined {
    const incoming = this.#senders.get(from)?.transfers.get(transfer)
    const end = offset + size
    if (incoming === undefined || incoming.size !== total || end > incoming.granted)
      return undefined
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
    const sender = this.#senders.get(incoming.from)
    // The transfer may have been dropped meanwhile, and its number be used again.
    if (sender?.transfers.get(incoming.transfer) !== incoming) return
    const before = incoming.ranges.count
    if (!incoming.ranges.add(offset, end)) return
    incoming.progressAt = now
    sender.outstanding -= incoming.ranges.count - before
    if (incoming.ranges.count === incoming.size) this.#remove(sender, incoming)
    this.#sayCredits(this.#grant(now, sender))
    if (incoming.ranges.count === incoming.size) incoming.onArrived(now, incoming.buffer)
  }

  drop(now: number, from: string, transfer: number): void {
    const sender = this.#senders.get(from)
    const incoming = sender?.transfers.get(transfer)
    if (sender === undefined || incoming === undefined) return
    this.#remove(sender, incoming)
    this.#sayCredits(this.#grant(now, sender))
  }

  /** Looks after transfers that do not move. */
  tick(now: number): void {
    for (const sender of this.#senders.values()) {
      for (const incoming of sender.transfers.values()) {
        // What has all that it was granted waits for its turn, not for its sender.
        if (incoming.granted === incoming.ranges.count) continue
        if (now - incoming.progressAt < this.#settings.stallMs) continue
        if (incoming.hasAskedAgain) incoming.onStalled(now)
        else this.#askAgain(now, incoming)
      }
    }
  }

  /** Either a chunk or our credit was lost, so both are sent again. */
  #askAgain(now: number, incoming: Incoming): void {
    const { from, call, transfer, ranges } = incoming
    incoming.hasAskedAgain = true
    incoming.progressAt = now
    this.#send(from, { type: 'credit', call, credits: [toCredit(incoming)] })
    this.#send(from, { type: 'resend', call, transfer, offset: ranges.firstGap })
  }

  #remove(sender: Sender, incoming: Incoming): void {
    sender.outstanding -= incoming.granted - incoming.ranges.count
    sender.transfers.delete(incoming.transfer)
    sender.waiting.delete(incoming)
    if (sender.transfers.size === 0) this.#senders.delete(incoming.from)
  }

  /** A piece each in turn, so that a small tensor does not wait for a large one. @returns those that may send more. */
  #grant(now: number, sender: Sender): Incoming[] {
    const { creditBytes, creditTotalBytes, wholeLimitBytes, chunkBytes } = this.#settings
    const share = Math.floor(creditTotalBytes / Math.max(1, this.#senders.size))
    const window = Math.min(creditBytes, share)
    const grown = new Set<Incoming>()
    // A set visits what is added while it is visited, so each has its turn until the window is full.
    for (const incoming of sender.waiting) {
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
    return [...grown]
  }

  #sayCredits(grown: readonly Incoming[]): void {
    for (const incoming of grown) {
      const { from, call } = incoming
      this.#send(from, { type: 'credit', call, credits: [toCredit(incoming)] })
    }
  }
}

function toCredit({ transfer, granted }: Incoming): TransferCredit {
  return { transfer, upTo: granted }
}

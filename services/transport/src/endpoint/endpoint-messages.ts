import { ServeError } from '@tutti/errors'
import {
  CHUNK_HEAD_BYTES,
  decodeChunkHead,
  decodeMessage,
  encodeMessage,
  encodeToken,
  INLINE_LIMIT_BYTES,
  INLINE_TOTAL_LIMIT_BYTES,
  type Message,
} from '@tutti/protocol'
import type { CameBytes } from '../ignored-messages.ts'
import type { OutgoingMessage } from '../send-message.ts'
import type { Arrival } from '../sockets/placed-reader.ts'
import type { PieceLimits } from '../transfers/outgoing-transfers.ts'
import type { InlineLimits } from '../transfers/split-tensors.ts'
import type { ChunkPump } from './chunk-pump.ts'
import type { MemberContext } from './member-context.ts'

/** Sends the messages of a member's calls, and hands on the messages and chunks that come for them. */
export class EndpointMessages {
  readonly #context: MemberContext
  readonly #inbox: string
  /** Woken by every message. */
  readonly #pump: ChunkPump
  readonly #taken: (now: number, message: Message) => void

  constructor(
    context: MemberContext,
    pump: ChunkPump,
    taken: (now: number, message: Message) => void,
  ) {
    const { self, link, subjects } = context
    this.#context = context
    this.#inbox = subjects.inbox(self)
    this.#pump = pump
    this.#taken = taken
    link.control.subscribe(subjects.control(self), (came) => this.#take(came))
    link.data.place(subjects.data(self), (head, { size, subject }) =>
      this.#place({ subject, bytes: head }, size),
    )
  }

  /** Takes a message that came over a direct connection. @param member - the one that it was opened with. */
  takeFrom(member: string, bytes: Uint8Array): void {
    this.#take({ subject: `direct ${member}`, bytes }, member)
  }

  /** Finds the place of a chunk that comes over the direct connection with `member`. */
  placeFrom(member: string, head: Uint8Array, size: number): Arrival | undefined {
    return this.#place({ subject: `direct ${member}`, bytes: head }, size, member)
  }

  /** Finds how much may ride in a message to any member now. */
  inlineLimits(): InlineLimits {
    // A broker that takes less than ours by default must have space for names and parameters too.
    const most = Math.floor(this.#context.link.maxPayload / 2)
    return {
      each: Math.min(INLINE_LIMIT_BYTES, most),
      total: Math.min(INLINE_TOTAL_LIMIT_BYTES, most),
    }
  }

  /** Finds how large the pieces of a tensor may be now. */
  pieceLimits(): PieceLimits {
    const { link, settings } = this.#context
    const { wholeLimitBytes, chunkBytes } = settings
    const most = Math.max(1, link.maxPayload - CHUNK_HEAD_BYTES)
    return { wholeBytes: Math.min(wholeLimitBytes, most), chunkBytes: Math.min(chunkBytes, most) }
  }

  /**
   * Sends a message to a member. If it goes over the broker and there is no responder, the broker says so to the inbox: for an offer to its call.
   * @throws ServeError MESSAGE_TOO_LARGE, MALFORMED_MESSAGE for offers and responses that cannot be messages.
   */
  send(to: string, message: OutgoingMessage): void {
    const { self, link, direct, subjects } = this.#context
    const bytes = encodeMessage({ ...message, from: self })
    const { maxPayload } = link
    if (bytes.byteLength > maxPayload) {
      // The broker would refuse it; no other replica would get it either.
      const text = `${message.type} of ${bytes.byteLength} bytes on the way to member '${to}', the broker takes at most ${maxPayload}`
      throw new ServeError('MESSAGE_TOO_LARGE', text, { details: { replica: to } })
    }
    const told = message.type === 'offer' ? `call.${message.call}` : `peer.${encodeToken(to)}`
    const connection = direct?.of(to)
    if (connection !== undefined) connection.sendMessage(bytes)
    else link.publish(subjects.control(to), bytes, `${this.#inbox}.${told}`)
    this.#pump.wake()
  }

  /** Hands on a message. What cannot be read is a stranger's, and changes nothing. */
  #take(came: CameBytes, sender?: string): void {
    const { self, clock, ignored } = this.#context
    const decode = (bytes: Uint8Array): Message => ofSender(decodeMessage(bytes), sender)
    const message = ignored.decode(clock.now(), came, decode)
    if (message === undefined || message.from === self) return
    this.#taken(clock.now(), message)
    this.#pump.wake()
  }

  #place(came: CameBytes, size: number, sender?: string): Arrival | undefined {
    const { clock, incomingTransfers, ignored } = this.#context
    const chunk = ignored.decode(clock.now(), came, (bytes) =>
      ofSender(decodeChunkHead(bytes, size), sender),
    )
    const place = chunk && incomingTransfers.place(chunk, chunk.payloadBytes)
    return place && { into: place.into, arrived: () => place.arrived(clock.now()) }
  }
}

/** @param sender - undefined if any member may be it. @throws ServeError MALFORMED_MESSAGE */
function ofSender<T extends { readonly from: string }>(said: T, sender: string | undefined): T {
  if (sender === undefined || said.from === sender) return said
  throw new ServeError('MALFORMED_MESSAGE', `it names '${said.from}' as its sender`)
}

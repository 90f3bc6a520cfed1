import type { Clock } from '@tutti/chassis'
import { type Chunk, decodeMessage, encodeMessage } from '@tutti/protocol'
import type { CallJob } from '../calls/call.ts'
import { IncomingCalls } from '../calls/incoming-calls.ts'
import { OutgoingCalls } from '../calls/outgoing-calls.ts'
import { completeSettings, type EndpointSettings } from '../endpoint-settings.ts'
import type { OutgoingMessage } from '../send-message.ts'
import { IncomingTransfers } from '../transfers/incoming-transfers.ts'
import { OutgoingTransfers } from '../transfers/outgoing-transfers.ts'
import type { InlineLimits } from '../transfers/split-tensors.ts'

/** The fate of one message. `delayMs` also reorders. */
export interface Fate {
  readonly copies: number
  readonly delayMs: number
}

export const UNHARMED: Fate = { copies: 1, delayMs: 0 }

/** Small bounds, so that small tensors meet all of them. */
export const SMALL: EndpointSettings = completeSettings({
  chunkBytes: 8,
  wholeLimitBytes: 16,
  creditBytes: 24,
  creditTotalBytes: 48,
  tensorBytes: 4096,
  tensorBytesPerMember: 2048,
  heldResponses: 16,
  responseCredits: 3,
  stallMs: 200,
  silenceMs: 300,
  waitMs: 2000,
})

/** The bytes of them that ride in messages. */
export const SMALL_INLINE: InlineLimits = { each: 4, total: 8 }

/** One side of a call with its parts that have neither clock nor I/O. */
export interface SimulatedMember {
  readonly id: string
  readonly incomingTransfers: IncomingTransfers
  readonly outgoingTransfers: OutgoingTransfers
  readonly outgoingCalls: OutgoingCalls
  readonly incomingCalls: IncomingCalls
}

/** Members and the messages between them, in a time of their own: everything goes through the real codec. */
export class FaultyNetwork {
  readonly members = new Map<string, SimulatedMember>()
  readonly #fate: () => Fate
  readonly #settings: EndpointSettings
  readonly #unasked: number
  readonly #queue: { readonly at: number; readonly act: () => void }[] = []
  /** Called after every event, for what must hold at all times. */
  onEvent: () => void = () => {}
  now = 0
  /** Types of the messages that members have sent, in order. */
  readonly said: string[] = []
  readonly #clock: Clock = {
    now: () => this.now,
    epochMs: () => this.now,
    setTimer: () => () => {},
  }

  /** @param unasked - bytes that every member announces to take unasked. */
  constructor(fate: () => Fate, settings: EndpointSettings = SMALL, unasked = 0) {
    this.#fate = fate
    this.#settings = settings
    this.#unasked = unasked
  }

  add(id: string, execute: (job: CallJob) => void): SimulatedMember {
    const settings = this.#settings
    const { wholeLimitBytes, chunkBytes } = settings
    const send = (to: string, message: OutgoingMessage): void => this.#send(id, to, message)
    const incomingTransfers = new IncomingTransfers(settings, send)
    const outgoingTransfers = new OutgoingTransfers(() => ({
      wholeBytes: wholeLimitBytes,
      chunkBytes,
    }))
    const unaskedBytes = (): number => this.#unasked
    const transfers = {
      incomingTransfers,
      outgoingTransfers,
      inlineLimits: () => SMALL_INLINE,
      unaskedBytes,
    }
    const common = { settings, send, ...transfers, clock: this.#clock }
    const member = {
      id,
      incomingTransfers,
      outgoingTransfers,
      outgoingCalls: new OutgoingCalls(common),
      incomingCalls: new IncomingCalls({ ...common, self: id, execute }),
    }
    this.members.set(id, member)
    return member
  }

  /** Lets `ms` pass, with everything that falls due. */
  run(ms: number, tickMs = 20): void {
    const end = this.now + ms
    while (this.now < end) {
      this.now += tickMs
      this.settle()
      for (const member of this.members.values()) {
        member.incomingTransfers.tick(this.now)
        member.outgoingCalls.sayDone()
        member.outgoingCalls.tick(this.now)
        member.incomingCalls.tick(this.now)
      }
      this.settle()
    }
  }

  /** Delivers what is due now and sends what may be sent, until nothing moves. */
  settle(): void {
    for (let moved = true; moved; ) {
      moved = this.#pump()
      const due = this.#queue.findIndex(({ at }) => at <= this.now)
      const [event] = due < 0 ? [] : this.#queue.splice(due, 1)
      if (event === undefined) continue
      moved = true
      event.act()
      this.onEvent()
    }
  }

  /** Brings a message to a member as if `from` had sent it. */
  inject(from: string, to: string, message: OutgoingMessage): void {
    const bytes = encodeMessage({ ...message, from })
    this.#carry(() => this.#deliver(to, bytes))
  }

  injectChunk(to: string, chunk: Chunk): void {
    this.#carry(() => this.members.get(to)?.incomingTransfers.chunk(this.now, chunk))
  }

  #send(from: string, to: string, message: OutgoingMessage): void {
    this.said.push(message.type)
    this.inject(from, to, message)
  }

  #deliver(to: string, bytes: Uint8Array): void {
    const member = this.members.get(to)
    if (member === undefined) return
    const message = decodeMessage(bytes)
    const isForCallee = ['offer', 'response-credit', 'cancel', 'done'].includes(message.type)
    const isForCaller = ['accepted', 'refused', 'response'].includes(message.type)
    // Credits and resends are for the side that knows the call; in these tests a member has one role.
    if (!isForCaller) member.incomingCalls.on(this.now, message)
    if (!isForCallee) member.outgoingCalls.on(this.now, message)
  }

  #pump(): boolean {
    let moved = false
    for (const member of this.members.values()) {
      for (
        let piece = member.outgoingTransfers.next(this.now);
        piece;
        piece = member.outgoingTransfers.next(this.now)
      ) {
        const { to, transfer, offset, total, bytes } = piece
        // Bytes of a tensor may change hands later, so what is on its way is a copy.
        this.injectChunk(to, { from: member.id, transfer, offset, total, bytes: bytes.slice() })
        moved = true
      }
    }
    return moved
  }

  #carry(act: () => void): void {
    const { copies, delayMs } = this.#fate()
    for (let i = 0; i < copies; i++) this.#queue.push({ at: this.now + delayMs, act })
  }
}

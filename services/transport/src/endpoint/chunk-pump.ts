import { encodeChunkHead } from '@tutti/protocol'
import { FLUSH_BYTES } from '../nats/broker-link.ts'
import type { MemberContext } from './member-context.ts'

/** Sends the pieces that transfers may send, and waits for the broker when too many bytes are on their way to it. */
export class ChunkPump {
  readonly #context: MemberContext
  #isRunning = false

  constructor(o: MemberContext) {
    this.#context = o
  }

  /** Begins if there is something to send. */
  wake(): void {
    if (this.#isRunning || !this.#context.outgoingTransfers.hasNext) return
    this.#isRunning = true
    void this.#run()
  }

  async #run(): Promise<void> {
    try {
      await this.#sendAll()
    } finally {
      this.#isRunning = false
    }
  }

  async #sendAll(): Promise<void> {
    const { outgoingTransfers, link, direct, clock, subjects, self } = this.#context
    const { data } = link
    for (
      let piece = outgoingTransfers.next(clock.now());
      piece;
      piece = outgoingTransfers.next(clock.now())
    ) {
      const { to, transfer, offset, total, bytes, retain } = piece
      const head = encodeChunkHead({ from: self, transfer, offset, total }, bytes.byteLength)
      // The call may end while its bytes wait in the socket, and their memory be used again.
      const written = retain?.()
      const connection = direct?.of(to)
      if (connection !== undefined) {
        // As much as may wait in its socket is within the receiver's credits.
        connection.sendChunk(head, bytes, written)
        continue
      }
      const message = { subject: subjects.data(to), head, bytes, ...(written && { written }) }
      if (!data.send(message)) written?.()
      if (data.unflushedBytes < FLUSH_BYTES) continue
      try {
        await data.flush()
      } catch {
        // The broker is away: what goes over it has failed, and its owner knows. The next tick goes on with the rest.
        return
      }
    }
  }
}

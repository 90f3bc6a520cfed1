import type { Clock } from '@tutti/chassis'
import { encodeChunk, type Subjects } from '@tutti/protocol'
import type { OutgoingTransfers } from '../transfers/outgoing-transfers.ts'
import type { BrokerConnection } from './nats-connection.ts'

/** What the pump moves from where to where. */
export interface ChunkPumpOptions {
  readonly self: string
  readonly subjects: Subjects
  readonly outgoing: OutgoingTransfers
  readonly data: BrokerConnection
  readonly clock: Clock
  /** Bytes that may wait for the broker; the library itself would take any number. */
  readonly flushBytes: number
}

/** Sends what transfers may send, and waits for the broker when too much is on its way to it. */
export class ChunkPump {
  readonly #o: ChunkPumpOptions
  #isRunning = false

  constructor(o: ChunkPumpOptions) {
    this.#o = o
  }

  /** Begins if there is something to send. */
  wake(): void {
    if (this.#isRunning || !this.#o.outgoing.hasNext) return
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
    const { outgoing, data, clock, subjects, self, flushBytes } = this.#o
    for (let piece = outgoing.next(clock.now()); piece; piece = outgoing.next(clock.now())) {
      const { to, transfer, offset, total, bytes } = piece
      data.publish(subjects.data(to), encodeChunk({ from: self, transfer, offset, total }, bytes))
      if (data.unflushedBytes < flushBytes) continue
      try {
        await data.flush()
      } catch {
        // The broker is away: all transfers have failed, and who owns them has heard so.
        return
      }
    }
  }
}

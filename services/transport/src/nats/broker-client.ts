import type { LinkSettings } from '../endpoint-settings.ts'
import type { BrokerOptions } from '../endpoints.ts'
import type { PlaceMessage } from './wire-parser.ts'

/** A message to the broker. */
export interface OutgoingBytes {
  readonly subject: string
  /** Viewed until `written`. */
  readonly bytes: Uint8Array
  /** Goes before `bytes`, as part of the message. */
  readonly head?: Uint8Array
  /** Where an answer is expected. */
  readonly reply?: string
  /** Called once, when `bytes` are no longer read: they were sent, copied, or the connection is gone. */
  readonly written?: () => void
}

/** One connection to the broker, from the moment when it is signed in; it does not come back. */
export interface BrokerClient {
  /** Its address, as HOST:PORT. */
  readonly server: string
  /** Bytes that one message may have, as the broker says. */
  readonly maxPayload: number
  readonly isClosed: boolean
  /** Resolves with the reason when the connection is gone. */
  readonly closed: Promise<string>
  publish(message: OutgoingBytes): void
  /** @returns ends it. */
  subscribe(subject: string, place: PlaceMessage): () => void
  /** Resolves when the broker has had all that was published; never, if the connection ends before. */
  flush(): Promise<void>
  /** Sends what is published, then closes. */
  close(): Promise<void>
  /** Gives the connection up at once. */
  destroy(): void
}

/** The options with which a client is connected. */
export interface ClientOptions {
  readonly server: string
  readonly broker: BrokerOptions
  /** Shown by the broker's tools. */
  readonly name: string
  readonly settings: Pick<LinkSettings, 'connectMs'>
  /** Bytes that are read at once where no message is on its way to its place. */
  readonly readBytes: number
  /** The broker refused something that it names, a subject say, or is about to stop. */
  readonly complained: (what: string) => void
  /** Calls what is not the client's own. Does not throw: undefined if that did. */
  readonly guard: <T>(act: () => T) => T | undefined
}

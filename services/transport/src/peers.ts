import type { ServeError } from '@tutti/errors'
import type { EnvelopeHandler, TensorBearer } from './tensor-bearer.ts'

/** How a process reaches the broker. Everything here comes from flags or settings of the executables. */
export interface BrokerOptions {
  /** One or several, `nats://host:4222` or `tls://host:4222`. */
  readonly servers: readonly string[]
  /** First token of every subject, so that installations share a broker. Default `tutti`. */
  readonly prefix: string
  /** The repository (a namespace on Kubernetes), so that tenants share a broker. Default `default`. */
  readonly repository: string
  readonly user?: string
  readonly password?: () => string
  readonly token?: () => string
  /** Path of a file with an nkey seed. */
  readonly nkeyFile?: string
  /** Path of a credentials file (JWT and seed); read again at every connect. */
  readonly credentialsFile?: string
  readonly tls?: {
    readonly caFile?: string
    readonly certFile?: string
    readonly keyFile?: string
  }
}

/** What a peer says of its load in heartbeats. */
export interface PeerLoad {
  readonly inFlight: number
  readonly queued: number
  readonly freeSlots: number
}

/** Questions beside inference; JSON in, JSON out, one request and one answer. */
export interface PeerQuestions {
  ask(
    peer: string,
    question: 'describe' | 'statistics',
    argument: unknown,
    o: { readonly signal: AbortSignal },
  ): Promise<unknown>
}

export interface StepPeerOptions {
  readonly broker: BrokerOptions
  readonly peer: string
  readonly handle: EnvelopeHandler
  /** Answers `describe` and `statistics`; the answer must be JSON. */
  answer(question: 'describe' | 'statistics', argument: unknown): Promise<unknown>
  /** The served revisions now. */
  revisions(): readonly (readonly [string, number, string])[]
  load(): PeerLoad
  /** Calls the listener when revisions or load that matter change (a new description). @returns ends it. */
  onChange(listener: () => void): () => void
}

/** A step on the broker. */
export interface StepPeer {
  readonly isConnected: boolean
  /** Announces draining, takes nothing new, resolves when all accepted calls are answered and their outputs fetched. */
  drain(o: { readonly signal: AbortSignal }): Promise<void>
  close(): Promise<void>
}

export interface RouterPeerOptions {
  readonly broker: BrokerOptions
  readonly peer: string
  /** A step appeared, or what it serves changed: ask it. */
  stepChanged(peer: string, revisions: readonly (readonly [string, number, string])[]): void
  /** A step is gone (said so, or dead). */
  stepGone(peer: string, error: ServeError): void
}

/** A router on the broker: calls steps, knows who is there. */
export interface RouterPeer extends PeerQuestions {
  readonly isConnected: boolean
  readonly bearer: TensorBearer
  /** Ids of the other routers of the repository. */
  routers(): readonly string[]
  drain(o: { readonly signal: AbortSignal }): Promise<void>
  close(): Promise<void>
}

import type { Logger } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'

/** The two connections that a peer has to its broker. */
export type ConnectionRole = 'control' | 'data'

/** Every log line of this room has a name here. */
export class TransportEvents {
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  connected(connection: ConnectionRole, server: string): void {
    this.#log.info('broker connected', { connection, server })
  }

  disconnected(connection: ConnectionRole, why: string): void {
    this.#log.warn('broker disconnected', { connection, why })
  }

  connectFailed(connection: ConnectionRole, error: string): void {
    this.#log.warn('broker cannot be connected, trying on', { connection, error })
  }

  brokerComplained(connection: ConnectionRole, what: string): void {
    this.#log.warn('broker complained', { connection, what })
  }

  brokerSilent(connection: ConnectionRole, silentMs: number): void {
    this.#log.warn('broker is silent, connecting anew', { connection, silentMs })
  }

  announceFailed(error: ServeError): void {
    this.#log.error('heartbeat cannot be sent, others do not see what is served here', {
      reason: error.reason,
      error: error.message,
    })
  }

  announcedAgain(): void {
    this.#log.info('heartbeats are sent again', {})
  }

  peerAppeared(peer: string, role: string): void {
    this.#log.info('peer appeared', { peer, role })
  }

  peerSuspected(peer: string): void {
    this.#log.warn('peer is suspect', { peer })
  }

  peerRecovered(peer: string): void {
    this.#log.info('peer recovered', { peer })
  }

  peerGone(peer: string, error: ServeError): void {
    this.#log.info('peer is gone', { peer, error: error.message })
  }

  /** @param count - since the last such line. */
  messageIgnored(subject: string, error: string, count: number): void {
    this.#log.warn('message ignored', { subject, error, count })
  }

  handlerFailed(error: ServeError): void {
    this.#log.error('message handler failed', { error: error.message })
  }

  draining(inFlight: number): void {
    this.#log.info('peer draining', { inFlight })
  }

  drained(): void {
    this.#log.info('peer drained', {})
  }
}

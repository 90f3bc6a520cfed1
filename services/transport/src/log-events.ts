import type { Logger } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'
import { MESSAGE_PROTOCOL_VERSION } from '@tutti/protocol'
import type { ForeignMember } from './members/foreign-members.ts'

/** The two connections that a member has to its broker. */
export type ConnectionRole = 'control' | 'data'

/** Every log line of this package has a name here. */
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

  memberAppeared(member: string, role: string): void {
    this.#log.info('member appeared', { member, role })
  }

  memberForeign({ member, role, oldestProtocol, newestProtocol }: ForeignMember): void {
    this.#log.warn('member speaks another protocol version, it is not called', {
      member,
      role,
      oldestProtocol,
      newestProtocol,
      want: MESSAGE_PROTOCOL_VERSION,
    })
  }

  memberSuspected(member: string): void {
    this.#log.warn('member is suspect', { member })
  }

  memberRecovered(member: string): void {
    this.#log.info('member recovered', { member })
  }

  memberGone(member: string, error: ServeError): void {
    this.#log.info('member is gone', { member, error: error.message })
  }

  directListening(address: string): void {
    this.#log.info('direct connections are taken', { address })
  }

  directConnected(member: string, transport: string): void {
    this.#log.info('member is reached directly', { member, transport })
  }

  /** @param member - undefined if it is not known. */
  directFailed(member: string | undefined, why: string): void {
    this.#log.warn('member is not reached directly, the broker carries everything', { member, why })
  }

  /** @param count - since the last such line. */
  messageIgnored(subject: string, error: string, count: number): void {
    this.#log.warn('message ignored', { subject, error, count })
  }

  handlerFailed(error: ServeError): void {
    this.#log.error('message handler failed', { error: error.message })
  }

  draining(inFlight: number): void {
    this.#log.info('member draining', { inFlight })
  }

  drained(): void {
    this.#log.info('member drained', {})
  }
}

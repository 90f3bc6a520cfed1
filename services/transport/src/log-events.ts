import { type Clock, exceptDetails, type Logger, limitLog, requestFields } from '@tutti/chassis'
import type { Reason, ServeError } from '@tutti/errors'
import { type Envelope, MESSAGE_PROTOCOL_VERSION } from '@tutti/protocol'
import type { ForeignMember } from './members/foreign-members.ts'

/** The two connections that a member has to its broker. */
export type ConnectionRole = 'control' | 'data'

/** Why an engine did not execute what it took. */
const OF_ENGINES: ReadonlySet<Reason> = new Set<Reason>(['ENGINE_FAILED', 'ENGINE_STOPPED'])

/** Writes the log lines of this package, each by a method with its name. */
export class TransportEvents {
  readonly #log: Logger
  readonly #ofCalls: Logger

  /** @param ofCalls - logger for faults of Tutti in calls, limited by itself: failures of engines hide none. */
  constructor(log: Logger, ofCalls = log) {
    this.#log = log
    this.#ofCalls = ofCalls
  }

  /** Makes the events of a member, with a limit of lines: its lines name others as `member`, and those come and go as often as they like. */
  static ofMember(o: { readonly member: string; readonly log: Logger; readonly clock: Clock }) {
    const log = o.log.child({ self: o.member })
    const limit = { clock: o.clock }
    return new TransportEvents(limitLog(log, limit), limitLog(log, limit, exceptDetails))
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

  /**
   * Logs the failure of a call that was executed here, or should have been. Engines' failures too: their cause, such as the
   * exception of a Python model, is otherwise only in the answer.
   */
  callFailed(envelope: Envelope, error: ServeError): void {
    const { model, version, step, context, traceparent } = envelope
    const trace = traceparent === undefined ? undefined : { traceparent }
    const fields = () => ({
      model,
      version,
      ...(step !== '' && { step }),
      ...requestFields(context.id, trace),
      error,
    })
    if (error.reason === 'INTERNAL') this.#ofCalls.error('call failed', fields())
    else if (OF_ENGINES.has(error.reason)) this.#log.warn('call failed', fields())
    else if (this.#ofCalls.isDebug) this.#ofCalls.debug('call refused', fields())
  }

  draining(inFlight: number): void {
    this.#log.info('member draining', { inFlight })
  }

  drained(): void {
    this.#log.info('member drained', {})
  }
}

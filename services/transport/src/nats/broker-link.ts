import type { Clock } from '@tutti/chassis'
import type { EndpointSettings } from '../endpoint-settings.ts'
import type { BrokerCounts, BrokerOptions } from '../endpoints.ts'
import type { TransportEvents } from '../log-events.ts'
import { SUSPECT_AFTER_MISSED } from '../members/membership.ts'
import { LinkWatch, type WatchedConnection } from './link-watch.ts'
import {
  type BrokerConnection,
  type ConnectionContext,
  openBrokerConnection,
  openDataConnection,
} from './nats-connection.ts'

/** The options of a link. */
export interface BrokerLinkContext {
  readonly broker: BrokerOptions
  readonly member: string
  readonly clock: Clock
  readonly settings: EndpointSettings
  readonly events: TransportEvents
  /** Called when both connections are there. */
  readonly up: () => void
  /** Called when one of them is gone: what was in flight is lost. */
  readonly down: () => void
}

/**
 * A member's two connections to the broker: what is small and urgent goes over `control`, tensors over `data`, so that neither
 * waits for the other. It is up when both are there.
 */
export class BrokerLink {
  readonly control: BrokerConnection
  readonly data: BrokerConnection
  readonly #context: BrokerLinkContext
  readonly #watches: readonly LinkWatch[]
  #isUp = false
  #connects = 0
  #isFlushing = false

  constructor(o: BrokerLinkContext) {
    this.#context = o
    const { settings } = o
    this.control = openBrokerConnection(this.#connectOptions('control'))
    this.data = openDataConnection(this.#connectOptions('data'))
    this.#watches = [
      this.#watch('control', this.control, settings.deadAfterMs),
      this.#watch('data', this.data, settings.dataDeadMs),
    ]
  }

  get isUp(): boolean {
    return this.#isUp
  }

  /** Counts of what went over it so far. */
  get counts(): BrokerCounts {
    const { control, data } = this
    const sentBytes = { control: control.sentBytes, data: data.sentBytes }
    return { isUp: this.#isUp, connects: this.#connects, sentBytes }
  }

  /** Reason why the broker cannot be reached, as far as it is known; '' if there is none. */
  get failure(): string {
    return this.control.failure || this.data.failure
  }

  /** Most bytes of one message; while the broker is away, as it said last. */
  get maxPayload(): number {
    const { control, data } = this
    return Math.min(control.maxPayload ?? MAX_PAYLOAD, data.maxPayload ?? MAX_PAYLOAD)
  }

  /** Publishes on the control connection. What is published while the broker is away is lost. */
  publish(subject: string, bytes: Uint8Array, reply?: string): boolean {
    const isSent = this.control.publish(subject, bytes, reply)
    if (isSent && this.control.unflushedBytes > FLUSH_BYTES) this.#flush()
    return isSent
  }

  /** True if the broker has owed an answer for so long that the silence of members says nothing about them. */
  get isLate(): boolean {
    const { heartbeatMs } = this.#context.settings
    const [control] = this.#watches
    return (control?.silentMs ?? 0) > heartbeatMs * (SUSPECT_AFTER_MISSED - 1)
  }

  /** Asks the broker whether it is there, and gives up a connection that is silent. @param now - ListenedTime's, in milliseconds. */
  tick(now: number): void {
    for (const watch of this.#watches) watch.tick(now)
  }

  async close(graceMs: number): Promise<void> {
    this.#isUp = false
    await Promise.all([this.control.close(graceMs), this.data.close(graceMs)])
  }

  #connectOptions(role: 'control' | 'data'): ConnectionContext {
    const { broker, member, clock, settings, events } = this.#context
    return {
      broker,
      name: `tutti ${member} ${role}`,
      clock,
      settings,
      listener: {
        connected: (server) => {
          events.connected(role, server)
          this.#changed()
        },
        disconnected: (why) => {
          events.disconnected(role, why)
          this.#changed()
        },
        connectFailed: (error) => events.connectFailed(role, error),
        complained: (what) => events.brokerComplained(role, what),
        handlerFailed: (error) => events.handlerFailed(error),
      },
    }
  }

  #watch(role: 'control' | 'data', connection: WatchedConnection, deadMs: number): LinkWatch {
    const { settings, events } = this.#context
    const watchSettings = { askEveryMs: settings.heartbeatMs, deadMs }
    return new LinkWatch(connection, watchSettings, (silentMs) =>
      events.brokerSilent(role, silentMs),
    )
  }

  #changed(): void {
    for (const watch of this.#watches) watch.reset()
    const isUp = this.control.isConnected && this.data.isConnected
    if (isUp === this.#isUp) return
    this.#isUp = isUp
    if (isUp) {
      this.#connects += 1
      this.#context.up()
    } else this.#context.down()
  }

  /** Learns how much the broker has taken, one question at a time. */
  #flush(): void {
    if (this.#isFlushing) return
    this.#isFlushing = true
    const ended = (): void => {
      this.#isFlushing = false
    }
    // A rejection says that the connection is gone, which its listener hears by itself.
    this.control.flush().then(ended, ended)
  }
}

/** Bytes that are sent before the broker is asked whether it has them: the client itself would take any number. */
export const FLUSH_BYTES = 4 * 1024 * 1024
/** Bytes of a message that a nats-server takes by default. */
const MAX_PAYLOAD = 1024 * 1024

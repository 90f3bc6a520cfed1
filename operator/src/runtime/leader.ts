import { type Clock, type Logger, limitLog, systemClock } from '@tutti/chassis'
import { assert, ServeError } from '@tutti/errors'
import {
  type Client,
  LEASE,
  type Lease,
  type ObjectKey,
  type Stored,
  toMicroTime,
  unlessNotFound,
} from '@tutti/kube'
import { FIELD_MANAGER } from './children.ts'
import { leadershipLost, leadershipTaken, leaseFailed, leaseReleased } from './log-events.ts'
import type { RuntimeMetrics } from './metrics.ts'

export interface LeaderElectionOptions {
  readonly client: Client
  /** Key of the Lease. */
  readonly key: ObjectKey & { readonly namespace: string }
  /** Identity of this process, unique to it: the pod's name and a uuid. */
  readonly identity: string
  /** Milliseconds for which others leave the lease alone after it changed; default 15 s. */
  readonly leaseMs?: number
  /** Milliseconds without a renewal after which a leader stops leading; default 10 s, below `leaseMs`. */
  readonly renewMs?: number
  /** Milliseconds between two tries; default 2 s. */
  readonly retryMs?: number
  readonly clock?: Clock
  readonly random?: () => number
  readonly log: Logger
  readonly metrics: Pick<RuntimeMetrics, 'isLeader'>
  /** Callback when this process begins to lead; called at most once. */
  readonly onTaken: () => void
  /** Callback when the lease is lost; called at most once. Another process may lead then, so the process must end at once. */
  readonly onLost: () => void
}

/** Followers spread their tries by up to this share, so that they do not come all at once. */
const JITTER = 1.2

/**
 * Elects one leader among the processes that share a Lease, by client-go's rules. The holder renews the lease. Others take it
 * when it has not changed for its duration. A leader that cannot renew stops before that time.
 */
export class LeaderElection {
  readonly #options: LeaderElectionOptions
  readonly #clock: Clock
  readonly #leaseMs: number
  readonly #renewMs: number
  readonly #retryMs: number
  /** Every try of an outage has the same to say. */
  readonly #log: Logger
  readonly #stopping = new AbortController()
  /** Lease as it was last seen, and when it last changed by the clock of this process; no other clock is trusted. */
  #observed: { readonly lease: Stored<Lease>; readonly at: number } | undefined
  /** Time at which the last successful renewal was sent; undefined while this process does not lead. */
  #renewedAt: number | undefined
  #stopTimer: () => void = () => {}
  #stopDeadline: () => void = () => {}
  #trying: Promise<void> = Promise.resolve()

  constructor(o: LeaderElectionOptions) {
    this.#options = o
    this.#clock = o.clock ?? systemClock
    this.#log = limitLog(o.log, { clock: this.#clock, lines: 5, everyMs: 30_000 })
    this.#leaseMs = o.leaseMs ?? 15_000
    this.#renewMs = o.renewMs ?? 10_000
    this.#retryMs = o.retryMs ?? 2_000
    assert(this.#leaseMs > this.#renewMs, 'a lease must last longer than its renewal may take')
    assert(this.#renewMs > JITTER * this.#retryMs, 'a renewal must leave time for a second try')
    o.metrics.isLeader.set({ name: o.key.name }, 0)
  }

  /** True from `onTaken` until the lease is lost or released. */
  get isLeader(): boolean {
    return this.#renewedAt !== undefined
  }

  /** True while no other process can have taken the lease. Read it right before a write. */
  get holdsLease(): boolean {
    return this.#renewedAt !== undefined && this.#clock.now() - this.#renewedAt < this.#leaseMs
  }

  /** Begins to try for the lease. It may be called only once. */
  start(): void {
    this.#schedule(0)
  }

  /** Stops trying and gives up the lease, so that another process can take it at once. Call it when all writes have ended. */
  async release(): Promise<void> {
    this.#halt()
    await this.#trying
    if (this.#renewedAt === undefined) return
    this.#follow()
    try {
      // A renewal that was cut short may have been carried out.
      const lease = await this.#read()
      if (lease?.spec?.holderIdentity !== this.#options.identity) return
      const now = this.#microNow()
      await this.#put(lease, {
        holderIdentity: '',
        leaseDurationSeconds: 1,
        acquireTime: now,
        renewTime: now,
        leaseTransitions: lease.spec.leaseTransitions ?? 0,
      })
      leaseReleased(this.#options.log)
    } catch (error) {
      // Others wait for the lease to end, no more.
      leaseFailed(this.#log, error)
    }
  }

  /** Stops trying and leading. A lease that this process holds stays until its time is over. */
  stop(): void {
    this.#halt()
    this.#follow()
  }

  #halt(): void {
    this.#stopping.abort(new ServeError('SERVER_STOPPING', 'the operator is stopping'))
    this.#stopTimer()
    this.#stopDeadline()
  }

  #follow(): void {
    this.#renewedAt = undefined
    this.#options.metrics.isLeader.set({ name: this.#options.key.name }, 0)
  }

  #schedule(delayMs: number): void {
    if (this.#stopping.signal.aborted) return
    this.#stopTimer = this.#clock.setTimer(delayMs, () => {
      this.#trying = this.#turn()
    })
  }

  async #turn(): Promise<void> {
    // A process that was frozen finds out here, before it sends anything.
    if (this.#isOverdue()) {
      this.#lose()
      return
    }
    const sentAt = this.#clock.now()
    const isHeld = await this.#tryHold()
    if (this.#stopping.signal.aborted) return
    if (isHeld) this.#hold(sentAt)
    else if (
      this.isLeader &&
      this.#observed?.lease.spec?.holderIdentity !== this.#options.identity
    ) {
      this.#lose()
      return
    }
    const { random = Math.random } = this.#options
    const jitter = this.isLeader ? 1 : 1 + (JITTER - 1) * random()
    this.#schedule(this.#retryMs * jitter)
  }

  #hold(sentAt: number): void {
    const isNew = this.#renewedAt === undefined
    this.#renewedAt = sentAt
    this.#stopDeadline()
    // Beside the tries: one that hangs must not hold up the end.
    const leftMs = this.#renewMs - (this.#clock.now() - sentAt)
    this.#stopDeadline = this.#clock.setTimer(leftMs, () => this.#lose())
    if (!isNew) return
    this.#options.metrics.isLeader.set({ name: this.#options.key.name }, 1)
    leadershipTaken(this.#options.log, this.#options.identity)
    this.#options.onTaken()
  }

  #isOverdue(): boolean {
    return this.#renewedAt !== undefined && this.#clock.now() - this.#renewedAt >= this.#renewMs
  }

  #lose(): void {
    if (this.#renewedAt === undefined || this.#stopping.signal.aborted) return
    this.#halt()
    this.#follow()
    leadershipLost(this.#options.log, this.#observed?.lease.spec?.holderIdentity ?? '')
    this.#options.onLost()
  }

  /** @returns whether it holds the lease now. */
  async #tryHold(): Promise<boolean> {
    try {
      return await this.#renewOrTake()
    } catch (error) {
      if (!this.#stopping.signal.aborted) leaseFailed(this.#log, error)
      return false
    }
  }

  async #renewOrTake(): Promise<boolean> {
    if (this.isLeader && this.#observed !== undefined) {
      try {
        await this.#write(this.#observed.lease)
        return true
      } catch (error) {
        if (this.#stopping.signal.aborted) return false
        // Somebody may have touched the lease, or the answer was lost: what it is now, the server knows.
        leaseFailed(this.#log, error)
      }
    }
    const lease = await this.#read()
    if (this.#stopping.signal.aborted) return false
    if (lease !== undefined) {
      this.#observe(lease)
      if (!this.#isFree(lease)) return false
    }
    await this.#write(lease)
    return true
  }

  /** Tells whether a lease is free: without a holder, held by this process, or unchanged for as long as it says. */
  #isFree({ spec }: Stored<Lease>): boolean {
    const holder = spec?.holderIdentity ?? ''
    if (holder === '' || holder === this.#options.identity) return true
    const lastsMs = (spec?.leaseDurationSeconds ?? 0) * 1000
    return this.#observed === undefined || this.#clock.now() - this.#observed.at >= lastsMs
  }

  /** Notes a lease. A lease with another version has changed. */
  #observe(lease: Stored<Lease>): void {
    const known = this.#observed?.lease.metadata
    if (known?.resourceVersion === lease.metadata.resourceVersion) return
    this.#observed = { lease, at: this.#clock.now() }
  }

  #read(): Promise<Stored<Lease> | undefined> {
    return unlessNotFound(this.#options.client.get(LEASE, this.#options.key, this.#call()))
  }

  /** Renews the lease if it is ours, else takes it. */
  async #write(lease: Stored<Lease> | undefined): Promise<void> {
    const { spec = {} } = lease ?? {}
    const isOurs = spec.holderIdentity === this.#options.identity
    const now = this.#microNow()
    const transitions = spec.leaseTransitions ?? 0
    await this.#put(lease, {
      holderIdentity: this.#options.identity,
      leaseDurationSeconds: Math.ceil(this.#leaseMs / 1000),
      acquireTime: isOurs ? (spec.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: isOurs || lease === undefined ? transitions : transitions + 1,
    })
  }

  async #put(lease: Stored<Lease> | undefined, spec: NonNullable<Lease['spec']>): Promise<void> {
    const { client, key } = this.#options
    const options = { fieldManager: FIELD_MANAGER, ...this.#call() }
    const written =
      lease === undefined
        ? await client.create(LEASE, { metadata: { ...key }, spec }, options)
        : await client.replace(LEASE, { ...lease, spec }, options)
    this.#observe(written)
  }

  /** Limits a request, so that one that hangs leaves time for another. */
  #call(): { signal?: AbortSignal; timeoutMs: number } {
    const timeoutMs = this.#renewMs / 2
    const { signal } = this.#stopping
    return signal.aborted ? { timeoutMs } : { signal, timeoutMs }
  }

  #microNow(): string {
    return toMicroTime(this.#clock.epochMs())
  }
}

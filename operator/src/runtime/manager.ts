import {
  type Clock,
  type Health,
  type Logger,
  type Metrics,
  type Running,
  raceSignal,
  withCauses,
} from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { EventRecorder } from './events.ts'
import type { LeaderElection } from './leader.ts'
import { cachesSynced, probesListening } from './log-events.ts'
import { watchLoop } from './loop-watch.ts'
import type { CacheReading, RuntimeMetrics } from './metrics.ts'
import {
  type ProbeAnswer,
  type ProbeRoutes,
  type ProbeServer,
  startProbeServer,
  textAnswer,
} from './probe-server.ts'

/** The part of a cache that a manager needs; `Cache` has it. */
export interface ManagedCache {
  readonly resource: { readonly plural: string }
  start(): void
  readonly hasSynced: boolean
  readonly synced: Promise<void>
  isStuck(limitMs: number): boolean
  reading(): CacheReading
  close(): Promise<void>
}

/** The part of a controller that a manager needs; `Controller` has it. */
export interface ManagedController {
  readonly name: string
  start(): void
  stop(): void
  abort(): void
  drained(): Promise<void>
}

/** An address to listen on. Port 0 means any free port. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

export interface ManagerOptions {
  readonly caches: readonly ManagedCache[]
  readonly controllers: readonly ManagedController[]
  /** Election whose `onTaken` must call the manager's `lead`. Absent: this process leads without an election. */
  readonly election?: LeaderElection
  readonly events: Pick<EventRecorder, 'close'>
  /** Address of `/livez` and `/readyz`. */
  readonly probes: ListenAddress
  /** Address of `/metrics`. */
  readonly scrapes: ListenAddress
  readonly health: Health
  readonly metrics: Metrics
  readonly runtimeMetrics: RuntimeMetrics
  readonly clock: Clock
  readonly log: Logger
  /** Milliseconds from the begin of `drain` until reconciles that still run are aborted; default 20 s. */
  readonly abortAfterMs?: number
  /** Milliseconds within which all caches must have synced; default 2 minutes. */
  readonly syncMs?: number
  /** Function that `close` calls last, to free what was made for the manager. */
  readonly close: () => Promise<void>
}

/** A server ends a watch after ten minutes at most: a cache that heard and tried nothing for twice as long is dead. */
const STUCK_MS = 1_200_000
/** Time that events on their way get when the process stops. */
const EVENTS_MS = 2_000

/**
 * Runs controllers. It starts the probes and metrics, then the caches, then the election, and on the leader the controllers. To
 * stop, it takes no new keys, waits for running reconciles, gives up the lease and closes everything.
 */
export class Manager implements Running {
  readonly #options: ManagerOptions
  readonly #servers: ProbeServer[] = []
  #stopWatch: () => void = () => {}
  #isStopping = false

  constructor(o: ManagerOptions) {
    this.#options = o
    o.runtimeMetrics.readCaches(() => o.caches.map((cache) => cache.reading()))
  }

  /** Ports of the probes and of the metrics, in this order; empty before `start`. */
  get ports(): readonly number[] {
    return this.#servers.map(({ port }) => port)
  }

  /**
   * Starts everything and resolves when the caches have synced. The process may begin to lead later.
   *
   * @throws ServeError SERVER_NOT_READY if the caches do not sync in time; the signal's reason if it aborts. All is closed then.
   */
  async start({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    try {
      await this.#listen()
      this.#stopWatch = watchLoop({ ...this.#options, metrics: this.#options.runtimeMetrics })
      for (const cache of this.#options.caches) cache.start()
      await this.#sync(signal)
    } catch (error) {
      await this.close()
      throw error
    }
    if (this.#options.election === undefined) this.lead()
    else this.#options.election.start()
  }

  /** Starts the controllers. Call it when this process begins to lead. */
  lead(): void {
    if (this.#isStopping) return
    for (const controller of this.#options.controllers) controller.start()
  }

  stopAccepting(): void {
    this.#isStopping = true
    for (const controller of this.#options.controllers) controller.stop()
  }

  async drain(): Promise<void> {
    const { clock, controllers, election, events, abortAfterMs = 20_000 } = this.#options
    const stopAbort = clock.setTimer(abortAfterMs, () => {
      for (const controller of controllers) controller.abort()
    })
    await Promise.all(controllers.map((controller) => controller.drained()))
    stopAbort()
    const limit = new AbortController()
    const stopLimit = clock.setTimer(EVENTS_MS, () => limit.abort())
    await events.close({ signal: limit.signal })
    stopLimit()
    // Only now: as long as this process may write, no other should.
    await election?.release()
  }

  async close(): Promise<void> {
    this.#isStopping = true
    this.#options.election?.stop()
    this.#stopWatch()
    for (const controller of this.#options.controllers) {
      controller.stop()
      controller.abort()
    }
    await Promise.all(this.#options.caches.map((cache) => cache.close()))
    await Promise.all(this.#servers.map((server) => server.close()))
    await this.#options.close()
  }

  async #listen(): Promise<void> {
    const { probes, scrapes, metrics, health, log } = this.#options
    const ready = withCauses(health, () => this.#unsynced())
    await this.#serve(probes, {
      '/livez': () => {
        const faults = this.#faults()
        return toProbe(health.isLive && faults.length === 0, faults)
      },
      '/readyz': () => toProbe(ready.isReady, ready.reasons),
    })
    await this.#serve(scrapes, {
      '/metrics': async () => ({
        status: 200,
        contentType: metrics.contentType,
        body: await metrics.render(),
      }),
    })
    const [probePort = 0, metricsPort = 0] = this.ports
    probesListening(log, probePort, metricsPort)
  }

  async #serve(address: ListenAddress, routes: ProbeRoutes): Promise<void> {
    this.#servers.push(await startProbeServer({ ...address, routes, log: this.#options.log }))
  }

  async #sync(signal: AbortSignal): Promise<void> {
    const { caches, clock, log, syncMs = 120_000 } = this.#options
    const since = clock.now()
    const late = new AbortController()
    const stopTimer = clock.setTimer(syncMs, () => {
      const missing = this.#unsynced().join(', ')
      late.abort(new ServeError('SERVER_NOT_READY', `after ${syncMs} ms: ${missing}`))
    })
    try {
      const all = Promise.all(caches.map((cache) => cache.synced))
      await raceSignal(all, AbortSignal.any([signal, late.signal]))
    } finally {
      stopTimer()
    }
    const objects = caches.reduce((sum, cache) => sum + cache.reading().objects, 0)
    cachesSynced(log, objects, Math.round(clock.now() - since))
  }

  #unsynced(): readonly string[] {
    const missing = this.#options.caches.filter((cache) => !cache.hasSynced)
    return missing.map(({ resource }) => `${resource.plural} are not read yet`)
  }

  /** Lists what a restart would heal. */
  #faults(): readonly string[] {
    const { caches, election } = this.#options
    const stuck = caches.filter((cache) => cache.isStuck(STUCK_MS))
    const isOverdue = election?.isLeader === true && !election.holdsLease
    return [
      ...stuck.map(({ resource }) => `the watch of ${resource.plural} is silent`),
      ...(isOverdue ? ['the lease is not renewed'] : []),
    ]
  }
}

function toProbe(isOk: boolean, reasons: readonly string[]): ProbeAnswer {
  return isOk ? textAnswer(200, 'ok') : textAnswer(503, reasons.join('\n'))
}

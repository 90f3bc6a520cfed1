import { randomUUID } from 'node:crypto'
import { type Clock, type Logger, systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { KeyedLimiter } from './keyed-limiter.ts'
import { reconcileFailed, reconcileHangs } from './log-events.ts'
import type { ControllerMetrics, RuntimeMetrics } from './metrics.ts'
import { openLimit } from './open-limit.ts'
import type { Source } from './sources.ts'
import { TerminalError } from './terminal-error.ts'
import { type Priority, type TakenKey, Workqueue } from './workqueue.ts'

/**
 * The input of a reconcile beside its key. It does not hold the event that caused the reconcile, which only looks at the state.
 */
export interface ReconcileContext {
  /** Signal that aborts when the reconcile's time is over or the process stops. Pass it to every call that waits. */
  readonly signal: AbortSignal
  /** Logger whose lines have the fields controller, key and reconcileId. */
  readonly log: Logger
  /**
   * Function that waits for something slow, an answer of a user's pod say, and gives the slot to other reconciles meanwhile. It
   * returns the result of `wait`.
   */
  readonly withoutSlot: <T>(wait: () => Promise<T>) => Promise<T>
}

/** The result of a reconcile that succeeded. One that throws is retried with backoff, but not after a TerminalError. */
export interface Result {
  /** Time until the key is reconciled again, in milliseconds; absent: not before the next change or resync. */
  readonly requeueAfterMs?: number | undefined
}

export interface ControllerOptions {
  /** Name of the controller in logs and metrics, also that of its folder. */
  readonly name: string
  readonly sources: readonly Source[]
  readonly reconcile: (context: ReconcileContext, key: string) => Promise<Result>
  /** Number of reconciles that may run at once; default 8, as they mostly wait for the API server. */
  readonly slots?: number
  /**
   * Group of a key, its namespace say. Groups take turns. A group has at most `slots` reconciles at once, including those in
   * `withoutSlot`. Default: all keys are in one group.
   */
  readonly groupOf?: (key: string) => string
  /** Longest time for one reconcile, in milliseconds; default 60 s. */
  readonly timeoutMs?: number
  /** Milliseconds between two resyncs, which enqueue all own objects; default 10 h. */
  readonly resyncMs?: number
  readonly clock?: Clock
  readonly random?: () => number
  readonly log: Logger
  readonly metrics: RuntimeMetrics
}

/** Time that a reconcile may take to return after its limit, before its slot is given to others. */
const RETURN_MS = 10_000

/** Reconciles that go on at once, those without a slot included: with 8 slots, 128 groups can use all of theirs. */
const MOST_IN_FLIGHT = 1024

/** Share of its interval over which a resync is spread. */
const RESYNC_SPREAD = 0.1

/**
 * Passes keys from its sources through a workqueue to `reconcile`. Several keys run at once, but one key never twice at a time.
 * Nothing runs before `start`. The manager calls `start` on the leader when all caches have synced.
 */
export class Controller {
  readonly name: string
  readonly #options: ControllerOptions
  readonly #clock: Clock
  readonly #slots: KeyedLimiter
  readonly #groupOf: (key: string) => string
  readonly #log: Logger
  readonly #metrics: ControllerMetrics
  readonly #queue: Workqueue
  readonly #stopping = new AbortController()
  readonly #ends: (() => void)[] = []
  #isPumping = false
  #isStarted = false
  #stopResync: () => void = () => {}

  constructor(o: ControllerOptions) {
    this.name = o.name
    this.#options = o
    this.#clock = o.clock ?? systemClock
    const most = o.slots ?? 8
    this.#slots = new KeyedLimiter({ total: most })
    this.#groupOf = o.groupOf ?? (() => '')
    this.#log = o.log.child({ controller: o.name })
    this.#metrics = o.metrics.controller(o.name, most)
    this.#queue = new Workqueue({
      clock: this.#clock,
      random: o.random ?? Math.random,
      observer: this.#metrics.queue,
      groupOf: this.#groupOf,
      limits: { total: MOST_IN_FLIGHT, perKey: most },
    })
    this.#metrics.readQueue(this.#queue)
    this.#queue.onReady(() => this.#pump())
  }

  get hasSynced(): boolean {
    return this.#options.sources.every((source) => source.hasSynced)
  }

  /** Number of reconciles that run, hanging ones included. */
  get inFlight(): number {
    return this.#queue.processing
  }

  /** Begins to take keys: first those of all present objects, then those of every change. */
  start(): void {
    if (this.#isStarted || this.#stopping.signal.aborted) return
    this.#isStarted = true
    for (const source of this.#options.sources) {
      this.#ends.push(source.start((key, priority) => this.#queue.add(key, { priority })))
    }
    this.#scheduleResync()
  }

  /** Enqueues a key for a reason that no cache sees. It has no effect before `start`. */
  enqueue(key: string, priority: Priority = 'high'): void {
    if (this.#isStarted) this.#queue.add(key, { priority })
  }

  /** Stops taking keys. Reconciles that run go on. */
  stop(): void {
    for (const end of this.#ends.splice(0)) end()
    this.#stopResync()
    this.#queue.shutDown()
  }

  /** Resolves when no reconcile runs. */
  async drained(): Promise<void> {
    await this.#queue.drained()
  }

  /** Aborts the signals of all reconciles that run. */
  abort(): void {
    this.#stopping.abort(new ServeError('SERVER_STOPPING', 'the operator is stopping'))
  }

  /**
   * Starts waiting reconciles by way of the event loop, so that ten thousand reconciles with nothing to wait for do not hold it.
   */
  #pump(): void {
    if (this.#isPumping) return
    this.#isPumping = true
    setImmediate(() => {
      this.#isPumping = false
      for (;;) {
        if (!this.#slots.hasCapacity('')) return
        const taken = this.#queue.take()
        if (taken === undefined) return
        void this.#process(taken)
      }
    })
  }

  async #process(taken: TakenKey): Promise<void> {
    const { key } = taken
    const slot = this.#takeSlot(this.#groupOf(key))
    const reconcileId = randomUUID()
    const log = this.#log.child({ key, reconcileId })
    const limit = this.#openLimit(log, () => {
      slot.release()
      this.#queue.release(key)
    })
    const since = this.#clock.now()
    this.#metrics.started()
    try {
      const context = { signal: limit.signal, log, withoutSlot: slot.withoutSlot }
      const result = await this.#options.reconcile(context, key)
      this.#ended(taken, result, since)
    } catch (error) {
      this.#failed(taken, error, { log, since })
    } finally {
      limit.close()
      slot.release()
      this.#queue.done(key)
    }
  }

  /** Takes a slot that is free. A reconcile that wants it back goes before new keys. */
  #takeSlot(
    group: string,
  ): Pick<ReconcileContext, 'withoutSlot'> & { readonly release: () => void } {
    let held = this.#slots.tryAcquire(group)
    let isReleased = false
    const give = (): void => {
      held?.()
      held = undefined
      this.#pump()
    }
    const release = (): void => {
      isReleased = true
      give()
    }
    const withoutSlot: ReconcileContext['withoutSlot'] = async (wait) => {
      // It is lent already, or was released for good.
      if (held === undefined) return await wait()
      give()
      try {
        return await wait()
      } finally {
        if (!isReleased) held = await this.#slots.acquire(group)
        if (isReleased) give()
      }
    }
    return { withoutSlot, release }
  }

  #ended({ key, priority }: TakenKey, { requeueAfterMs }: Result, since: number): void {
    this.#queue.forget(key)
    if (requeueAfterMs !== undefined) this.#queue.addAfter(key, requeueAfterMs, { priority })
    const outcome = requeueAfterMs === undefined ? 'success' : 'requeue_after'
    this.#metrics.ended(outcome, this.#clock.now() - since)
  }

  #failed(
    { key, priority }: TakenKey,
    error: unknown,
    o: { readonly log: Logger; readonly since: number },
  ): void {
    this.#metrics.ended('error', this.#clock.now() - o.since)
    const isTerminal = error instanceof TerminalError
    if (isTerminal) {
      this.#metrics.terminal()
      this.#queue.forget(key)
    } else {
      this.#queue.addRateLimited(key, { priority })
    }
    // A reconcile that stopping cut short is no failure.
    if (this.#stopping.signal.aborted) return
    reconcileFailed(o.log, error, { isTerminal, failures: this.#queue.failures(key) })
  }

  /**
   * Opens the limit of one reconcile. A reconcile that does not return loses its slot and counts for no limit, but keeps its key.
   */
  #openLimit(log: Logger, onHang: () => void): { readonly signal: AbortSignal; close(): void } {
    const timeoutMs = this.#options.timeoutMs ?? 60_000
    let stopHangTimer: (() => void) | undefined
    const limit = openLimit({
      clock: this.#clock,
      timeoutMs,
      signal: this.#stopping.signal,
      toError: () => {
        this.#metrics.timedOut()
        stopHangTimer = this.#clock.setTimer(RETURN_MS, () => {
          reconcileHangs(log, timeoutMs + RETURN_MS)
          onHang()
        })
        return new ServeError('DEADLINE_EXCEEDED', `the reconcile took longer than ${timeoutMs} ms`)
      },
    })
    return {
      signal: limit.signal,
      close: () => {
        limit.close()
        stopHangTimer?.()
      },
    }
  }

  #scheduleResync(): void {
    const everyMs = this.#options.resyncMs ?? 36_000_000
    const random = this.#options.random ?? Math.random
    this.#stopResync = this.#clock.setTimer(everyMs, () => {
      for (const key of this.#options.sources.flatMap((source) => source.keys())) {
        this.#queue.addAfter(key, random() * everyMs * RESYNC_SPREAD, { priority: 'low' })
      }
      this.#scheduleResync()
    })
  }
}

import { type Clock, systemClock } from '@tutti/chassis'
import { KeyedLimiter, type KeyedLimiterOptions, type Release } from './keyed-limiter.ts'
import { RoundRobin } from './round-robin.ts'

/**
 * The priority of a key: `high` for a change, `low` for an initial list, a resync or a change that concerns many keys. High goes
 * first.
 */
export type Priority = 'high' | 'low'

export interface AddOptions {
  /** Priority of the key; default `high`. A key that is already in the queue keeps the higher of the two. */
  readonly priority?: Priority
}

/** A key that was taken out; it counts as being processed until `done`. */
export interface TakenKey {
  readonly key: string
  readonly priority: Priority
}

/** The observer to which a workqueue reports each step of a key. Times are in milliseconds. */
export interface WorkqueueObserver {
  added(): void
  /** Reports that a key was taken. @param waitedMs - time since the first add of the key. */
  taken(waitedMs: number): void
  done(tookMs: number): void
  retried(): void
}

export interface WorkqueueOptions {
  readonly clock?: Clock
  /** Delay before the first retry, in milliseconds; default 200. */
  readonly firstRetryMs?: number
  /** Longest delay before a retry, in milliseconds without jitter; default 5 minutes, the longest a user waits after a repair. */
  readonly longestRetryMs?: number
  /** Source of random numbers from 0 up to but not including 1. */
  readonly random?: () => number
  readonly observer?: WorkqueueObserver
  /** Group of a key, its namespace say. Groups take turns. Default: all keys are in one group. */
  readonly groupOf?: (key: string) => string
  /** Limits of keys that are processed at once, in total and per group; default: no bound. */
  readonly limits?: KeyedLimiterOptions
}

/** Delays are drawn from 80 % to 120 %, so that many that failed together do not come back together. */
const JITTER = 0.2

interface Waiting {
  readonly at: number
  readonly priority: Priority
  readonly stopTimer: () => void
}

interface Processing {
  readonly since: number
  readonly release: Release
}

/**
 * A queue of keys like client-go's. A key is in the queue at most once. A key that is being processed is not given out again; if
 * it is added meanwhile, it comes once more after `done`. High priority goes first. Within a priority groups take turns, and
 * within a group keys are first in, first out. A group at its limit is passed over.
 */
export class Workqueue {
  readonly #clock: Clock
  readonly #firstRetryMs: number
  readonly #longestRetryMs: number
  readonly #random: () => number
  readonly #observer: WorkqueueObserver | undefined
  readonly #groupOf: (key: string) => string
  readonly #limiter: KeyedLimiter
  readonly #ready = { high: new RoundRobin<string>(), low: new RoundRobin<string>() }
  /** Keys that are to be processed, ready or as soon as they are done. */
  readonly #dirty = new Map<string, { priority: Priority; readonly addedAt: number }>()
  readonly #processing = new Map<string, Processing>()
  readonly #waiting = new Map<string, Waiting>()
  readonly #failures = new Map<string, number>()
  readonly #idle = new Set<() => void>()
  #depth = 0
  #isShut = false
  #onReady: () => void = () => {}

  constructor(o: WorkqueueOptions = {}) {
    this.#clock = o.clock ?? systemClock
    this.#firstRetryMs = o.firstRetryMs ?? 200
    this.#longestRetryMs = o.longestRetryMs ?? 300_000
    this.#random = o.random ?? Math.random
    this.#observer = o.observer
    this.#groupOf = o.groupOf ?? (() => '')
    this.#limiter = new KeyedLimiter(o.limits ?? {})
  }

  /** Number of keys that are ready, including those whose group is at its limit. */
  get depth(): number {
    return this.#depth
  }

  /** Number of keys that wait for a delay to end. */
  get waiting(): number {
    return this.#waiting.size
  }

  get processing(): number {
    return this.#processing.size
  }

  /** Returns for each key that is being processed the milliseconds since it was taken. */
  processingMs(): readonly number[] {
    const now = this.#clock.now()
    return [...this.#processing.values()].map(({ since }) => now - since)
  }

  /** Calls `listener` whenever a key may be ready. A second listener replaces the first. */
  onReady(listener: () => void): void {
    this.#onReady = listener
  }

  /** Makes a key ready now, also one that waits for a delay. It has no effect after `shutDown`. */
  add(key: string, { priority = 'high' }: AddOptions = {}): void {
    if (this.#isShut) return
    const waited = this.#waiting.get(key)
    waited?.stopTimer()
    this.#waiting.delete(key)
    const wanted = waited?.priority === 'high' ? 'high' : priority
    const dirty = this.#dirty.get(key)
    if (dirty !== undefined) {
      this.#raise(key, dirty, wanted)
      return
    }
    this.#dirty.set(key, { priority: wanted, addedAt: this.#clock.now() })
    this.#observer?.added()
    if (!this.#processing.has(key)) this.#makeReady(key, wanted)
  }

  /** Makes a key ready after `delayMs`. Among several calls the earliest time counts, and a ready key stays ready. */
  addAfter(key: string, delayMs: number, { priority = 'high' }: AddOptions = {}): void {
    if (this.#isShut) return
    if (delayMs <= 0 || this.#dirty.has(key)) {
      this.add(key, { priority })
      return
    }
    const known = this.#waiting.get(key)
    const now = this.#clock.now()
    const at = Math.min(now + delayMs, known?.at ?? Number.POSITIVE_INFINITY)
    const merged = known?.priority === 'high' ? 'high' : priority
    known?.stopTimer()
    // add() takes the key out of #waiting, with its priority.
    const stopTimer = this.#clock.setTimer(at - now, () => this.add(key, { priority: 'low' }))
    this.#waiting.set(key, { at, priority: merged, stopTimer })
  }

  /** Counts a failure of a key and adds it with a delay, which doubles with each failure since `forget`. */
  addRateLimited(key: string, o: AddOptions = {}): void {
    const failures = this.#failures.get(key) ?? 0
    this.#failures.set(key, failures + 1)
    this.#observer?.retried()
    const delayMs = Math.min(this.#longestRetryMs, this.#firstRetryMs * 2 ** failures)
    this.addAfter(key, delayMs * (1 - JITTER + 2 * JITTER * this.#random()), o)
  }

  /** Forgets the failures of a key, so that the next one counts as the first. */
  forget(key: string): void {
    this.#failures.delete(key)
  }

  /** Returns the number of failures of a key since `forget`. */
  failures(key: string): number {
    return this.#failures.get(key) ?? 0
  }

  /** Takes the next key, if one is ready. The caller must call `done` for it. */
  take(): TakenKey | undefined {
    return this.#takeFrom('high') ?? this.#takeFrom('low')
  }

  /** Ends the processing of a key. If the key was added meanwhile, it is ready now. */
  done(key: string): void {
    const taken = this.#processing.get(key)
    if (taken === undefined) return
    this.#processing.delete(key)
    taken.release()
    this.#observer?.done(this.#clock.now() - taken.since)
    const dirty = this.#dirty.get(key)
    if (dirty !== undefined) this.#makeReady(key, dirty.priority)
    else if (this.#depth > 0) this.#onReady()
    if (this.#processing.size === 0) {
      for (const resolve of this.#idle) resolve()
      this.#idle.clear()
    }
  }

  /** Stops counting a key against the limits, though it is still being processed. */
  release(key: string): void {
    this.#processing.get(key)?.release()
    if (this.#depth > 0) this.#onReady()
  }

  /** Shuts the queue: it drops all ready and waiting keys and accepts no more. Keys that are being processed go on. */
  shutDown(): void {
    this.#isShut = true
    for (const { stopTimer } of this.#waiting.values()) stopTimer()
    this.#waiting.clear()
    this.#dirty.clear()
    this.#failures.clear()
    this.#ready.high.clear()
    this.#ready.low.clear()
    this.#depth = 0
  }

  /** Resolves when no key is being processed. */
  async drained(): Promise<void> {
    if (this.#processing.size === 0) return
    await new Promise<void>((resolve) => this.#idle.add(resolve))
  }

  #raise(
    key: string,
    dirty: { priority: Priority; readonly addedAt: number },
    wanted: Priority,
  ): void {
    if (wanted === 'low' || dirty.priority === 'high') return
    dirty.priority = 'high'
    const group = this.#groupOf(key)
    if (this.#ready.low.delete(group, key)) this.#ready.high.add(group, key)
  }

  #makeReady(key: string, priority: Priority): void {
    this.#ready[priority].add(this.#groupOf(key), key)
    this.#depth += 1
    this.#onReady()
  }

  #takeFrom(priority: Priority): TakenKey | undefined {
    const next = this.#ready[priority].take((group) => this.#limiter.hasCapacity(group))
    const release = next && this.#limiter.tryAcquire(next.key)
    if (next === undefined || release === undefined) return undefined
    const { item: key } = next
    const now = this.#clock.now()
    this.#observer?.taken(now - (this.#dirty.get(key)?.addedAt ?? now))
    this.#dirty.delete(key)
    this.#processing.set(key, { since: now, release })
    this.#depth -= 1
    return { key, priority }
  }
}

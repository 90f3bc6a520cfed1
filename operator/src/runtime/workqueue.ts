import { type Clock, systemClock } from '@tutti/chassis'
import { KeyedLimiter, type KeyedLimiterOptions, type Release } from './keyed-limiter.ts'
import { RoundRobin } from './round-robin.ts'

/** `high`: something changed. `low`: the initial list, a resync, a fan-out to many; it waits until nothing high is ready. */
export type Priority = 'high' | 'low'

export interface AddOptions {
  /** Default `high`. A key that is there already keeps the higher one. */
  readonly priority?: Priority
}

/** A key that was taken out; it counts as being processed until `done`. */
export interface TakenKey {
  readonly key: string
  readonly priority: Priority
}

/** The observer that a workqueue tells of itself while it goes on; times in milliseconds. */
export interface WorkqueueObserver {
  added(): void
  /** @param waitedMs - from its first add to now. */
  taken(waitedMs: number): void
  done(tookMs: number): void
  retried(): void
}

export interface WorkqueueOptions {
  readonly clock?: Clock
  /** Delay before the first repetition; default 200. */
  readonly firstRetryMs?: number
  /** Longest delay before a repetition, the jitter apart; default 5 minutes: a user who repaired something waits no longer. */
  readonly longestRetryMs?: number
  /** From 0 up to 1, not 1. */
  readonly random?: () => number
  readonly observer?: WorkqueueObserver
  /** The group of a key, its namespace say; groups take turns. Default: all keys are of one. */
  readonly groupOf?: (key: string) => string
  /** How many are processed at once, in all and of each group; default: no bound. */
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
 * A queue of keys, as client-go's: a key is in it once, however often it is added; a key that is being processed is not
 * given out again, and one that is added meanwhile comes exactly once more, after `done`. Keys of high priority go first; of one priority
 * groups take turns, and within a group the key that was added first is next. A group that is at its limit is passed over.
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

  /** Keys that can be taken now, or once their group is below its limit. */
  get depth(): number {
    return this.#depth
  }

  /** Keys that wait for their time. */
  get waiting(): number {
    return this.#waiting.size
  }

  get processing(): number {
    return this.#processing.size
  }

  /** Milliseconds since each key that is being processed was taken. */
  processingMs(): readonly number[] {
    const now = this.#clock.now()
    return [...this.#processing.values()].map(({ since }) => now - since)
  }

  /** Calls `listener` whenever a key became ready; one listener at a time. */
  onReady(listener: () => void): void {
    this.#onReady = listener
  }

  /** The key is to be processed now; one that waits for its time waits no longer. Without effect once shut down. */
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

  /** The key is to be processed in `delayMs`; the earliest of several such calls holds, and one that is ready stays so. */
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

  /** The key failed: it comes again after a delay that doubles with each failure since it was last forgotten. */
  addRateLimited(key: string, o: AddOptions = {}): void {
    const failures = this.#failures.get(key) ?? 0
    this.#failures.set(key, failures + 1)
    this.#observer?.retried()
    const delayMs = Math.min(this.#longestRetryMs, this.#firstRetryMs * 2 ** failures)
    this.addAfter(key, delayMs * (1 - JITTER + 2 * JITTER * this.#random()), o)
  }

  /** The key did not fail: the next failure counts as the first. */
  forget(key: string): void {
    this.#failures.delete(key)
  }

  /** Failures since the key was last forgotten. */
  failures(key: string): number {
    return this.#failures.get(key) ?? 0
  }

  /** Takes the key that is next, if one is ready. The caller calls `done`. */
  take(): TakenKey | undefined {
    return this.#takeFrom('high') ?? this.#takeFrom('low')
  }

  /** The key is no longer being processed; if it was added meanwhile, it is ready now. */
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

  /** Takes the key out of all limits, though it is still being processed. */
  release(key: string): void {
    this.#processing.get(key)?.release()
    if (this.#depth > 0) this.#onReady()
  }

  /** Takes nothing more, and drops what is ready and what waits; what is being processed goes on. */
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

  /** Resolves as soon as nothing is being processed. */
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

import { type Clock, systemClock } from '@tutti/chassis'
import { DelayHeap } from './delay-heap.ts'
import { KeyLanes, type KeyLanesOptions } from './key-lanes.ts'
import { KeyList } from './key-list.ts'

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

/** What a workqueue tells of itself while it goes on; times in milliseconds. */
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
  /** Default: there is always room. */
  readonly lanes?: KeyLanesOptions
}

/** Delays are drawn from 80 % to 120 %, so that many that failed together do not come back together. */
const JITTER = 0.2

/** Entries of the heap that count no longer, beside as many as do, before they are dropped. */
const STALE_ENTRIES = 1024

interface Waiting {
  readonly at: number
  readonly priority: Priority
}

/**
 * A queue of keys, as client-go's: a key is in it once, however often it is added; nobody else gets a key that is being
 * processed, and one that is added meanwhile comes exactly once more, after `done`. A key whose lane is full is passed over until
 * another of its lane is done, and has that one's place then: only what has a higher priority goes before it.
 */
export class Workqueue {
  readonly #clock: Clock
  readonly #firstRetryMs: number
  readonly #longestRetryMs: number
  readonly #random: () => number
  readonly #observer: WorkqueueObserver | undefined
  readonly #lanes: KeyLanes | undefined
  readonly #lists: Readonly<Record<Priority, KeyList>> = { high: new KeyList(), low: new KeyList() }
  /** Keys that are to be processed, ready or as soon as they are done. */
  readonly #dirty = new Map<string, { priority: Priority; readonly addedAt: number }>()
  /** Keys that are being processed, with the moment at which they were taken. */
  readonly #processing = new Map<string, number>()
  readonly #waiting = new Map<string, Waiting>()
  readonly #heap = new DelayHeap()
  readonly #failures = new Map<string, number>()
  readonly #idle = new Set<() => void>()
  #stopTimer: (() => void) | undefined
  #timerAt = Number.POSITIVE_INFINITY
  #depth = 0
  #isShut = false
  #onReady: () => void = () => {}

  constructor(o: WorkqueueOptions = {}) {
    this.#clock = o.clock ?? systemClock
    this.#firstRetryMs = o.firstRetryMs ?? 200
    this.#longestRetryMs = o.longestRetryMs ?? 300_000
    this.#random = o.random ?? Math.random
    this.#observer = o.observer
    this.#lanes = o.lanes && new KeyLanes(o.lanes)
  }

  /** Keys that can be taken now, or once there is room in their lane. */
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
    return [...this.#processing.values()].map((since) => now - since)
  }

  /** Calls `listener` whenever a key became ready; one listener at a time. */
  onReady(listener: () => void): void {
    this.#onReady = listener
  }

  /** The key is to be processed now; one that waits for its time waits no longer. Without effect once shut down. */
  add(key: string, { priority = 'high' }: AddOptions = {}): void {
    if (this.#isShut) return
    const waited = this.#waiting.get(key)
    if (waited !== undefined) this.#waiting.delete(key)
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

  /** The key is to be processed in `delayMs`; the earliest of several such wishes holds, and one that is ready stays so. */
  addAfter(key: string, delayMs: number, { priority = 'high' }: AddOptions = {}): void {
    if (this.#isShut) return
    const dirty = this.#dirty.get(key)
    if (delayMs <= 0 || dirty !== undefined) {
      this.add(key, { priority })
      return
    }
    const known = this.#waiting.get(key)
    const at = this.#clock.now() + delayMs
    const isEarlier = known === undefined || at < known.at
    const merged = {
      at: isEarlier ? at : known.at,
      priority: known?.priority === 'high' ? known.priority : priority,
    }
    this.#waiting.set(key, merged)
    if (isEarlier) {
      this.#heap.push({ key, at })
      this.#dropStale()
      this.#setTimer()
    }
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

  /** Takes the key that is next, if one is ready. Whoever takes it calls `done`. */
  take(): TakenKey | undefined {
    return this.#takeFrom('high') ?? this.#takeFrom('low')
  }

  /** The key is no longer being processed; if it was added meanwhile, it is ready now. */
  done(key: string): void {
    const since = this.#processing.get(key)
    if (since === undefined) return
    this.#processing.delete(key)
    this.#observer?.done(this.#clock.now() - since)
    const dirty = this.#dirty.get(key)
    if (dirty !== undefined) this.#makeReady(key, dirty.priority)
    this.leaveLane(key)
    if (this.#processing.size === 0) {
      for (const resolve of this.#idle) resolve()
      this.#idle.clear()
    }
  }

  /** The key gives its place in its lane to others, though it is still being processed. */
  leaveLane(key: string): void {
    const woken = this.#lanes?.leave(key) ?? []
    for (const next of woken) {
      const dirty = this.#dirty.get(next)
      if (dirty !== undefined) this.#lists[dirty.priority].push(next)
    }
    if (woken.length > 0) this.#onReady()
  }

  /** Takes nothing more, and drops what is ready and what waits; what is being processed goes on. */
  shutDown(): void {
    this.#isShut = true
    this.#stopTimer?.()
    this.#stopTimer = undefined
    this.#timerAt = Number.POSITIVE_INFINITY
    this.#waiting.clear()
    this.#heap.clear()
    this.#dirty.clear()
    this.#failures.clear()
    this.#lists.high.clear()
    this.#lists.low.clear()
    this.#lanes?.drop()
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
    // Its place among the low ones stays; #takeFrom passes over it.
    if (!this.#processing.has(key)) this.#lists.high.push(key)
  }

  #makeReady(key: string, priority: Priority): void {
    this.#lists[priority].push(key)
    this.#depth += 1
    this.#onReady()
  }

  #takeFrom(priority: Priority): TakenKey | undefined {
    const list = this.#lists[priority]
    for (let key = list.shift(); key !== undefined; key = list.shift()) {
      const dirty = this.#dirty.get(key)
      // A place that its key has left for a higher priority.
      if (dirty?.priority !== priority || this.#processing.has(key)) continue
      if (this.#lanes?.enter(key, priority) === false) continue
      const now = this.#clock.now()
      this.#dirty.delete(key)
      this.#processing.set(key, now)
      this.#depth -= 1
      this.#observer?.taken(now - dirty.addedAt)
      return { key, priority }
    }
    return undefined
  }

  /** A key that was added before its time leaves its entry in the heap, perhaps for hours. */
  #dropStale(): void {
    if (this.#heap.size < 2 * this.#waiting.size + STALE_ENTRIES) return
    this.#heap.clear()
    for (const [key, { at }] of this.#waiting) this.#heap.push({ key, at })
  }

  #setTimer(): void {
    const at = this.#heap.peek()?.at ?? Number.POSITIVE_INFINITY
    if (at >= this.#timerAt) return
    this.#stopTimer?.()
    this.#timerAt = at
    this.#stopTimer = this.#clock.setTimer(at - this.#clock.now(), () => this.#addDue())
  }

  #addDue(): void {
    this.#timerAt = Number.POSITIVE_INFINITY
    this.#stopTimer = undefined
    const now = this.#clock.now()
    for (let next = this.#heap.peek(); next !== undefined; next = this.#heap.peek()) {
      const known = this.#waiting.get(next.key)
      const counts = known?.at === next.at
      if (counts && next.at > now) break
      this.#heap.pop()
      // add() takes the key out of #waiting, with its priority.
      if (counts) this.add(next.key, { priority: known.priority })
    }
    this.#setTimer()
  }
}

import type { ExecutionTimes } from '@tutti/backends'
import { AutoDelay } from '../queue/auto-delay.ts'
import { RequestQueue } from '../queue/request-queue.ts'
import { addOffer, queueRules, type RuleChoice } from './queue-model.ts'

/** How requests come: so many a millisecond at random moments, or from clients that each wait for an answer. */
export type Arrivals =
  | { readonly perMs: number }
  | { readonly clients: number; readonly thinkMs: number }

export interface BatchingScenario {
  readonly arrivals: Arrivals
  readonly requests: number
  /** Duration of an execution, by its items. */
  readonly executionMs: (size: number) => number
  readonly instances?: number
  readonly rules?: RuleChoice
  /** Measured in place of the delay of the rules. */
  readonly isAuto?: boolean
  /** 0 or above, below 1. */
  readonly random: () => number
  /** A timer fires on time, or up to so much later. */
  readonly timerMs?: number
}

/** The results of a simulation, with times in milliseconds. */
export interface BatchingResult {
  readonly perSecond: number
  readonly meanMs: number
  readonly p99Ms: number
  readonly meanBatch: number
  /** The longest time that requests waited although an instance was free. */
  readonly longestHoldMs: number
  /** By execution: the requests of it, in order. */
  readonly batches: readonly (readonly number[])[]
}

/** Plays a model version on a virtual clock: its queue, its instances, and clients. */
export function simulateBatching(o: BatchingScenario): BatchingResult {
  return new Simulation(o).run()
}

/** The times of an execution that only computes. */
export function taken(ms: number): ExecutionTimes {
  return { computeInputNs: 0, computeInferNs: ms * 1e6, computeOutputNs: 0 }
}

interface Event {
  readonly at: number
  readonly happen: () => void
}

class Simulation {
  readonly #scenario: BatchingScenario
  readonly #delay: AutoDelay | undefined
  readonly #queue: RequestQueue<string>
  readonly #arrivedAt: number[] = []
  readonly #latencies: number[] = []
  readonly #batches: number[][] = []
  #events: Event[] = []
  #now = 0
  #idle: number
  #freeSince = 0
  #wakeAt = Number.POSITIVE_INFINITY
  #longestHoldMs = 0

  constructor(o: BatchingScenario) {
    this.#scenario = o
    this.#idle = o.instances ?? 1
    this.#delay = o.isAuto === true ? new AutoDelay() : undefined
    const delay = this.#delay
    const auto = delay && { delay, deadlineOf: () => Number.POSITIVE_INFINITY }
    this.#queue = new RequestQueue(queueRules({ maxQueued: 1e6, ...o.rules }), auto)
  }

  run(): BatchingResult {
    const { arrivals } = this.#scenario
    const count = 'clients' in arrivals ? arrivals.clients : 1
    for (let i = 0; i < count; i += 1) this.#arriveIn(this.#gapMs())
    for (let next = this.#pop(); next !== undefined; next = this.#pop()) {
      this.#now = next.at
      next.happen()
    }
    const sorted = this.#latencies.toSorted((a, b) => a - b)
    return {
      perSecond: (sorted.length / this.#now) * 1000,
      meanMs: sorted.reduce((sum, ms) => sum + ms, 0) / sorted.length,
      p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
      meanBatch: sorted.length / this.#batches.length,
      longestHoldMs: this.#longestHoldMs,
      batches: this.#batches,
    }
  }

  #gapMs(): number {
    const { arrivals, random } = this.#scenario
    if ('perMs' in arrivals) return -Math.log(1 - random()) / arrivals.perMs
    return arrivals.thinkMs * (0.5 + random())
  }

  #arriveIn(ms: number): void {
    this.#after(ms, () => {
      if (this.#arrivedAt.length >= this.#scenario.requests) return
      if (this.#queue.length === 0) this.#freeSince = this.#now
      const item = String(this.#arrivedAt.push(this.#now) - 1)
      addOffer(this.#queue, { item, at: this.#now })
      if ('perMs' in this.#scenario.arrivals) this.#arriveIn(this.#gapMs())
      this.#pump()
    })
  }

  #pump(): void {
    while (this.#idle > 0) {
      const next = this.#queue.next(this.#now)
      if (typeof next === 'number') return this.#wake(next)
      this.#execute(next.map(Number))
    }
  }

  #wake(at: number): void {
    if (at >= this.#wakeAt) return
    this.#wakeAt = at
    const lateMs = this.#scenario.random() * (this.#scenario.timerMs ?? 0)
    this.#after(at - this.#now + lateMs, () => {
      if (this.#wakeAt !== at) return
      this.#wakeAt = Number.POSITIVE_INFINITY
      this.#pump()
    })
  }

  #execute(batch: number[]): void {
    this.#longestHoldMs = Math.max(this.#longestHoldMs, this.#now - this.#freeSince)
    this.#idle -= 1
    this.#batches.push(batch)
    const ms = this.#scenario.executionMs(batch.length)
    this.#after(ms, () => {
      this.#delay?.executed(batch.length, taken(ms))
      if (this.#idle === 0) this.#freeSince = this.#now
      this.#idle += 1
      for (const request of batch) {
        this.#latencies.push(this.#now - (this.#arrivedAt[request] ?? 0))
        if ('clients' in this.#scenario.arrivals) this.#arriveIn(this.#gapMs())
      }
      this.#pump()
    })
  }

  #after(ms: number, happen: () => void): void {
    this.#events.push({ at: this.#now + ms, happen })
  }

  #pop(): Event | undefined {
    let first = 0
    for (let i = 1; i < this.#events.length; i += 1) {
      if ((this.#events[i]?.at ?? 0) < (this.#events[first]?.at ?? 0)) first = i
    }
    return this.#events.splice(first, 1)[0]
  }
}

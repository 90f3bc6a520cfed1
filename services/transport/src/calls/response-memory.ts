import type { EndpointSettings } from '../endpoint-settings.ts'
import { ByteBudget } from '../transfers/byte-budget.ts'

/** The responses of a call, which wait for memory and try again when there may be some. */
export interface MemoryWaiter {
  retry(now: number): void
}

/** The bytes that responses take of this process from when they begin to arrive until their readers have taken them. */
export class ResponseMemory {
  readonly #budget: ByteBudget
  /** Longest first. */
  readonly #waiting = new Set<MemoryWaiter>()

  constructor({ tensorBytes, tensorBytesPerMember }: EndpointSettings) {
    this.#budget = new ByteBudget(tensorBytes, tensorBytesPerMember)
  }

  get inUse(): number {
    return this.#budget.inUse
  }

  /** The most that the responses of one member may ever have. */
  get largest(): number {
    return this.#budget.largest
  }

  /** Takes bytes for a member's response. @returns false if there are not so many free: then `waiter` tries again later. */
  take(from: string, bytes: number, waiter: MemoryWaiter): boolean {
    const isTaken = this.#budget.take(from, bytes)
    if (!isTaken) this.#waiting.add(waiter)
    return isTaken
  }

  give(from: string, bytes: number): void {
    this.#budget.give(from, bytes)
  }

  stopWaiting(waiter: MemoryWaiter): void {
    this.#waiting.delete(waiter)
  }

  /** Lets those that wait try again. */
  retry(now: number): void {
    for (const waiter of this.#waiting) waiter.retry(now)
  }
}

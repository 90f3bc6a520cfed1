import { setImmediate } from 'node:timers/promises'
import { sleep } from '@tutti/chassis'
import { attempt, type BenchTurn } from './turn.ts'

/** Node's timers are up to a millisecond late; the rest is waited for in turns of the event loop. */
const TIMER_MS = 2
/** Milliseconds after the end: in them the requests that were due shortly before it are sent all the same. */
const GRACE_MS = 10
/** Requests that are due at the same time and sent before answers are read. */
const BURST = 16

export interface Arrivals {
  /** Draws the time to the next request, in milliseconds. */
  readonly gapMs: () => number
  /** Requests per second on average. */
  readonly rate: number
  readonly maxInFlight: number
}

/**
 * Makes gaps between requests that come independently of one another, as those of many users do. They are exponentially
 * distributed.
 *
 * @param rate - requests per second on average.
 * @param random - uniform in [0, 1).
 * @returns a function that draws the next gap, in milliseconds.
 */
export function poissonGaps(rate: number, random: () => number): () => number {
  return () => (-Math.log(1 - random()) * 1000) / rate
}

/** Makes a generator of random numbers, uniform in [0, 1), which repeats itself for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Sends requests when they are due, whether or not earlier ones are answered. With `maxInFlight` requests in flight, the next
 * request waits for an answer, and its latency includes the wait. Requests that are still due at the end of the turn count as
 * unsent.
 */
export function runOpenLoop(turn: BenchTurn, arrivals: Arrivals): Promise<void> {
  return new OpenLoop(turn, arrivals).run()
}

class OpenLoop {
  readonly #turn: BenchTurn
  readonly #arrivals: Arrivals
  readonly #endAt: number
  #dueAt: number
  #inFlight = 0
  #answered: (() => void) | undefined

  constructor(turn: BenchTurn, o: Arrivals) {
    this.#turn = turn
    this.#arrivals = o
    this.#endAt = turn.clock.now() + turn.durationMs
    this.#dueAt = turn.clock.now() + o.gapMs()
  }

  async run(): Promise<void> {
    const { clock, signal, tally } = this.#turn
    while (this.#dueAt < this.#endAt && clock.now() < this.#endAt + GRACE_MS) {
      await waitUntil(this.#dueAt, this.#turn)
      if (signal.aborted) break
      for (let sent = 0; sent < BURST && this.#isDue() && !this.#isFull(); sent += 1) {
        void this.#send(this.#dueAt)
        this.#advance()
      }
      if (!this.#isDue() || !this.#isFull()) continue
      tally.isFull = true
      await this.#waitForAnswer()
    }
    // The rest of a run that the user ended was not due.
    if (clock.now() >= this.#endAt) tally.unsent += this.#dueUntilTheEnd()
    while (this.#inFlight > 0) await this.#waitForAnswer()
  }

  #isDue(): boolean {
    return this.#dueAt < this.#endAt && this.#dueAt <= this.#turn.clock.now()
  }

  /**
   * Estimates how many requests are due until the end. They are not drawn one by one, which would take minutes with a high rate and
   * a long turn.
   */
  #dueUntilTheEnd(): number {
    return Math.max(0, Math.ceil(((this.#endAt - this.#dueAt) * this.#arrivals.rate) / 1000))
  }

  #isFull(): boolean {
    return this.#inFlight >= this.#arrivals.maxInFlight
  }

  #advance(): void {
    this.#dueAt += this.#arrivals.gapMs()
  }

  async #send(dueAt: number): Promise<void> {
    this.#inFlight += 1
    await attempt(this.#turn, dueAt)
    this.#inFlight -= 1
    this.#answered?.()
  }

  #waitForAnswer(): Promise<void> {
    return new Promise((resolve) => (this.#answered = resolve))
  }
}

/** Lets answers come in at least once. */
async function waitUntil(dueAt: number, { clock, signal }: BenchTurn): Promise<void> {
  const coarseMs = dueAt - clock.now() - TIMER_MS
  // The turn sees the abort itself.
  if (coarseMs > 0) await sleep(coarseMs, { clock, signal }).catch(() => {})
  do await setImmediate()
  while (clock.now() < dueAt && !signal.aborted)
}

import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type {
  InferRequest,
  ObservedCall,
  ObservedModel,
  RequestEnd,
  RequestObserver,
  RequestWatch,
} from '@tutti/tensor'
import { type RecordedSteps, SpanBudget, StepSpans } from './step-spans.ts'

/** Captures of all pages together. */
const MAX_CAPTURES = 16
/** Time for which a capture is kept after its page has last asked; the page may be in the background. */
const KEPT_MS = 5 * 60_000
/** A page that asks no more for so long gives way to another one. */
const IDLE_MS = 10_000

/** The request that a page waits for: the next one of a model that has all that is given here. */
export interface WantedRequest {
  readonly model: string
  readonly isFailed?: boolean
  /** Time in milliseconds that a request must exceed to be caught. */
  readonly slowerThanMs?: number
  /** The id that its client gave it, or its trace id. */
  readonly id?: string
}

/** A caught request and its steps. Nothing of what it has sent or got, nor the text of its error, which may quote that. */
export interface CaughtRequest extends RecordedSteps {
  readonly id: string
  /** The id of the trace that its client began; '' if it began none, also where the server began one. */
  readonly traceId: string
  readonly version: number
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  readonly elapsedMs: number
  /** The reason of its failure; '' if it was answered. */
  readonly reason: string
}

export interface CaptureState {
  /** Requests of the model that have ended since the page waits. */
  readonly seen: number
  readonly caught: CaughtRequest | undefined
}

interface Capture {
  readonly turn: string
  readonly wanted: WantedRequest
  askedAt: number
  seen: number
  caught: CaughtRequest | undefined
}

/**
 * Catches requests for people who look at a server: while a page waits for one of a model, the steps of its requests are
 * recorded. A page never gets a request that began before it waited. Nothing is recorded, and no timer runs, while no page waits.
 */
export class RequestCaptures implements RequestObserver {
  readonly #clock: Clock
  readonly #changed: (isWaiting: boolean) => void
  readonly #budget = new SpanBudget()
  /** Captures, by the id of the page that waits. */
  readonly #captures = new Map<string, Capture>()
  /** Captures that have caught nothing yet; a new array with each change. */
  #waiting: readonly Capture[] = []

  /** @param changed - whether requests have to be watched from now on. */
  constructor(clock: Clock, changed: (isWaiting: boolean) => void = () => {}) {
    this.#clock = clock
    this.#changed = changed
  }

  get isWaiting(): boolean {
    return this.#waiting.length > 0
  }

  /**
   * Notes what a page waits for; another request takes the place of the one before.
   *
   * @param page - its own name.
   * @param turn - names what it waits for: with another one it waits anew.
   * @throws ServeError OVERLOADED if too many pages wait.
   */
  wait(page: string, turn: string, wanted: WantedRequest): CaptureState {
    const found = this.#captures.get(page)
    const capture = found?.turn === turn ? found : this.#add(page, turn, wanted)
    capture.askedAt = this.#clock.now()
    const { seen, caught } = capture
    return { seen, caught }
  }

  /** Ends the wait of a page, unless it waits in another turn by now. */
  stop(page: string, turn: string): void {
    if (this.#captures.get(page)?.turn === turn) this.#captures.delete(page)
    this.#update()
  }

  /** @returns records the request; undefined if no page waits for one of its model. */
  began(model: ObservedModel, request: InferRequest, call: ObservedCall): RequestWatch | undefined {
    const now = this.#clock.now()
    if (this.#waiting.some(({ askedAt }) => now - askedAt > KEPT_MS)) this.#dropIdle(KEPT_MS)
    const { name, version } = model
    if (!this.#waiting.some(({ wanted }) => wanted.model === name)) return undefined
    const startedAt = this.#clock.epochMs()
    const waiting = this.#waiting
    const spans = new StepSpans(this.#clock, this.#budget)
    const watch = spans.began(model)
    const ended = (end: RequestEnd): void => {
      watch.ended?.(end)
      this.#ended(name, waiting, () => {
        const steps = spans.read()
        const elapsedMs = steps.spans[0]?.endMs ?? 0
        const reason = end.error?.reason ?? ''
        return { ...steps, ...idsOf(request, call), version, startedAt, elapsedMs, reason }
      })
    }
    return { ...watch, ended }
  }

  /** @param before - what waited when the request began. */
  #ended(model: string, before: readonly Capture[], recorded: () => CaughtRequest): void {
    const isFor = (one: Capture): boolean => one.wanted.model === model && before.includes(one)
    const waiting = this.#waiting.filter(isFor)
    if (waiting.length === 0) return
    const request = recorded()
    for (const capture of waiting) {
      capture.seen += 1
      if (isWanted(request, capture.wanted)) capture.caught = request
    }
    this.#update()
  }

  #add(page: string, turn: string, wanted: WantedRequest): Capture {
    this.#captures.delete(page)
    if (this.#captures.size >= MAX_CAPTURES) this.#dropIdle(IDLE_MS)
    if (this.#captures.size >= MAX_CAPTURES) {
      const text = `${MAX_CAPTURES} pages wait for requests of this server, which is its bound`
      throw new ServeError('OVERLOADED', text)
    }
    const capture = { turn, wanted, askedAt: this.#clock.now(), seen: 0, caught: undefined }
    this.#captures.set(page, capture)
    this.#update()
    return capture
  }

  #dropIdle(idleMs: number): void {
    const now = this.#clock.now()
    for (const [page, { askedAt }] of this.#captures) {
      if (now - askedAt > idleMs) this.#captures.delete(page)
    }
    this.#update()
  }

  #update(): void {
    this.#waiting = [...this.#captures.values()].filter(({ caught }) => caught === undefined)
    this.#changed(this.isWaiting)
  }
}

function idsOf({ context }: InferRequest, { trace }: ObservedCall) {
  // version-traceid-spanid-flags
  return { id: context.id, traceId: trace?.traceparent.split('-')[1] ?? '' }
}

function isWanted(request: CaughtRequest, wanted: WantedRequest): boolean {
  const { isFailed = false, slowerThanMs = 0, id } = wanted
  if (isFailed && request.reason === '') return false
  if (id !== undefined && id !== request.id && id !== request.traceId) return false
  return request.elapsedMs >= slowerThanMs
}

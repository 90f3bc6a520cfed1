import type { Clock } from '@tutti/chassis'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import { requestPrefix, type StepRequest } from '@tutti/tensor'
import type { BearerResponse, EnvelopeSink } from '@tutti/transport'
import type { QueueEntry } from '../queue/queue-entry.ts'

/** What comes with a request besides its tensors. */
export interface RequestLimits {
  /** Aborts when the caller is gone. */
  readonly signal: CancelSignal
  /** What is left of the request's time; absent without a deadline. */
  readonly remainingMs?: number
  /** What the request came in; what its model calls belongs to the same request. Absent in tests. */
  readonly envelope?: Envelope
}

/** What waits for a request, so that it can be told that nobody wants the answer any more. */
export interface Abandonment {
  abandon(request: AcceptedRequest, error: ServeError): void
}

/** What runs requests. */
export interface RunningRequests {
  /** @returns false if the answer of the request is counted already. */
  abandon(request: AcceptedRequest, error: ServeError): boolean
  /** How many responses a request has had. */
  sentTo(request: AcceptedRequest): number
}

/** A request between acceptance and its one final response. It listens for cancel and deadline until then. */
export class AcceptedRequest {
  readonly request: StepRequest
  readonly envelope: Envelope | undefined
  readonly acceptedAt: number
  /** Infinity without a deadline. */
  readonly deadlineAt: number
  /** Set while the request waits. */
  entry: QueueEntry<AcceptedRequest> | undefined
  /** Set while the request runs. */
  execution: RunningRequests | undefined
  readonly #sink: EnvelopeSink
  readonly #signal: CancelSignal
  readonly #onAbort: () => void
  readonly #clearTimer: (() => void) | undefined
  readonly #settled: () => void
  readonly #owner: Abandonment
  #isAnswered = false
  /** Calls that the model makes for the request; they end with it. */
  #calls: Set<() => void> | undefined

  constructor(
    request: StepRequest,
    o: {
      readonly sink: EnvelopeSink
      readonly limits: RequestLimits
      readonly clock: Clock
      readonly owner: Abandonment
      /** Called once, after the final response. */
      readonly settled: () => void
    },
  ) {
    this.request = request
    this.envelope = o.limits.envelope
    this.acceptedAt = o.clock.now()
    this.#sink = o.sink
    this.#signal = o.limits.signal
    this.#settled = o.settled
    this.#owner = o.owner
    this.#onAbort = () => o.owner.abandon(this, cancelError(this.#signal.reason))
    this.#signal.addEventListener('abort', this.#onAbort, { once: true })
    const { remainingMs } = o.limits
    this.deadlineAt = this.acceptedAt + (remainingMs ?? Number.POSITIVE_INFINITY)
    if (remainingMs !== undefined) {
      this.#clearTimer = o.clock.setTimer(remainingMs, () =>
        o.owner.abandon(this, deadlineError(request)),
      )
    }
  }

  get isAnswered(): boolean {
    return this.#isAnswered
  }

  /** As ResponseSink's: undefined if a further response may come now, or would be dropped. */
  room(): Promise<void> | undefined {
    return this.#isAnswered ? undefined : this.#sink.room?.()
  }

  /** Answers with an error instead of what the engine would still give. */
  giveUp(error: ServeError): void {
    this.#owner.abandon(this, error)
  }

  /** Passes a response on. After the final one nothing has an effect. */
  respond(response: BearerResponse): void {
    if (this.#isAnswered) return
    if (response.final) {
      this.#isAnswered = true
      this.#signal.removeEventListener('abort', this.#onAbort)
      this.#clearTimer?.()
    }
    this.#sink.send(response)
    if (!response.final) return
    for (const end of this.#calls ?? []) end()
    this.#settled()
  }

  /** Calls `end` when the request is answered, at once if it is. @returns takes it back. */
  whenAnswered(end: () => void): () => void {
    if (this.#isAnswered) {
      end()
      return () => {}
    }
    this.#calls ??= new Set()
    this.#calls.add(end)
    return () => void this.#calls?.delete(end)
  }
}

/** What the caller is told when its signal aborted: Triton gives CANCELLED without a text. */
export function cancelError(reason: unknown): ServeError {
  if (reason instanceof ServeError && reason.code !== 'CANCELLED') return reason
  return new ServeError('CANCELLED', '', { cause: reason })
}

export function deadlineError(request: StepRequest): ServeError {
  const prefix = requestPrefix(request.context.id)
  return new ServeError('DEADLINE_EXCEEDED', `${prefix}the time of the request is over`)
}

import { type Clock, sampledTraceId, type TraceParent } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { RequestSeconds } from '@tutti/telemetry'
import type { RequestObserver } from '@tutti/tensor'
import { observeModel } from '../backend/decorate.ts'
import type { InferenceBackend, Protocol, ResolvedModel } from '../backend/inference-backend.ts'

export interface RequestCounting {
  readonly protocol: Protocol
  /** True if the requests come from outside, over an edge listener. */
  readonly isOutside?: boolean
  readonly clock: Pick<Clock, 'now'>
  /** Absent where nobody counts. */
  readonly seconds?: Pick<RequestSeconds, 'observe'> | undefined
  /** Absent where nobody looks at single requests. */
  readonly observer?: RequestObserver | undefined
}

/** The requests that clients make at one listener. Each is one: a call, or a request of a stream. */
export class ClientRequests {
  readonly #counting: RequestCounting

  constructor(o: RequestCounting) {
    this.#counting = o
  }

  /** Opens the count of a request that comes. @param model - the name that it is for, where that is known before it is read. */
  open(trace: TraceParent | undefined, model = ''): ClientRequest {
    return new ClientRequest(this.#counting, trace, model)
  }
}

/** One request of a client, from its arrival until its last response is given to the connection, or it is refused. */
export class ClientRequest {
  readonly #counting: RequestCounting
  readonly #trace: TraceParent | undefined
  readonly #startedAt: number
  #name: string
  #model: ResolvedModel | undefined
  #error: ServeError | undefined
  #isOver = false

  constructor(o: RequestCounting, trace: TraceParent | undefined, name: string) {
    this.#counting = o
    this.#trace = trace
    this.#name = name
    this.#startedAt = o.clock.now()
  }

  /** Finds its model. @throws ServeError as the backend does. */
  resolve(backend: InferenceBackend, name: string, version: string): ResolvedModel {
    this.#name = name
    const model = backend.resolve(name, version)
    this.#model = model
    const { observer, clock, protocol, isOutside = false } = this.#counting
    if (observer === undefined) return model
    const client = { protocol, isOutside, arrivedAt: this.#startedAt }
    return observeModel(model, observer, { clock, client })
  }

  /** Notes an error that the client gets within an answer. The first one counts. */
  failed(error: ServeError): void {
    this.#error ??= error
  }

  /**
   * Counts a request whose client left without an answer. A client's time begins before ours: one that leaves when a tenth of it
   * is left, or less, has met its own deadline.
   *
   * @param deadlineAt - by the clock, in milliseconds; undefined for a call without a deadline.
   * @param error - its end otherwise.
   */
  left(deadlineAt: number | undefined, error: ServeError): void {
    const now = this.#counting.clock.now()
    const isLate =
      deadlineAt !== undefined && deadlineAt - now <= (deadlineAt - this.#startedAt) / 10
    this.ended(
      isLate ? new ServeError('DEADLINE_EXCEEDED', 'the client left at its deadline') : error,
    )
  }

  /**
   * Ends the request. The first end counts: a client may leave after its answer, and a model may answer a client that has left.
   */
  ended(error = this.#error): void {
    if (this.#isOver) return
    this.#isOver = true
    const { protocol, clock, seconds } = this.#counting
    seconds?.observe({
      protocol,
      model: this.#model?.name ?? this.#name,
      version: this.#model?.version,
      code: error?.code ?? 'OK',
      seconds: (clock.now() - this.#startedAt) / 1000,
      traceId: this.#trace && sampledTraceId(this.#trace),
    })
  }
}

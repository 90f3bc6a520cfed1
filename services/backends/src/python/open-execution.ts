import { ServeError } from '@tutti/errors'
import {
  NO_TIMES,
  type Parameters,
  type StepRequest,
  type StepResponse,
  type StepTimes,
} from '@tutti/tensor'
import type { EngineRequest, ExecutionTimes } from '../engine.ts'
import type { ArenaPart } from './arena.ts'

/** The state of one request of an execution: what it has had. */
interface Part {
  sent: number
  /** Nanoseconds that the process spent on its inputs and on its outputs. */
  inputNs: number
  outputNs: number
  hasFinal: boolean
  isCancelled: boolean
  /** A model that is not decoupled has one response; it waits for the final flag. */
  held: StepResponse | undefined
  giveBack: (() => void) | undefined
}

const NO_PARAMETERS: Parameters = new Map()

/** Response without index and final flag; `error` replaces it if something went wrong. */
export interface ResponseContent extends Pick<StepResponse, 'outputs' | 'parameters' | 'retain'> {
  readonly error?: ServeError
}

/** Functions that an execution calls at its events. */
export interface ExecutionEvents {
  /** Called when the model has returned and some requests still stream. */
  readonly returned: () => void
  /** Called when every request has had its final response and the model has returned. */
  readonly ended: (times: ExecutionTimes) => void
}

/** Options of an execution. */
export interface ExecutionOptions extends ExecutionEvents {
  /** Key of the first request; the others follow it. Keys name requests between the server and the process. */
  readonly firstKey: number
  readonly batch: readonly EngineRequest[]
  readonly isDecoupled: boolean
  /** Part of the arena with the inputs; freed when the model no longer uses them. */
  readonly region: ArenaPart | undefined
  /** Part of the arena for outputs; freed with the result. */
  readonly scratch: ArenaPart | undefined
  /** Nanoseconds that copying the inputs took on this side. */
  readonly copyNs: () => number
}

/** One call of `execute`. It tracks the responses of each request until all are answered and the model has returned. */
export class OpenExecution {
  readonly o: ExecutionOptions
  hasReturned = false
  readonly #parts: readonly Part[]
  #unanswered: number
  #hasEnded = false
  #times: ExecutionTimes = { computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 }

  constructor(o: ExecutionOptions) {
    this.o = o
    this.#unanswered = o.batch.length
    this.#parts = o.batch.map(() => ({
      sent: 0,
      inputNs: 0,
      outputNs: 0,
      hasFinal: false,
      isCancelled: false,
      held: undefined,
      giveBack: undefined,
    }))
  }

  /**
   * Marks a request whose caller has left.
   *
   * @returns its key for the process; undefined if the request is over or was marked before.
   */
  cancel(position: number): number | undefined {
    const part = this.#parts[position]
    if (part === undefined || part.hasFinal || part.isCancelled) return undefined
    part.isCancelled = true
    return this.o.firstKey + position
  }

  /** Finds a request; undefined if nobody waits for it. */
  wanted(position: number): StepRequest | undefined {
    const part = this.#parts[position]
    return part === undefined || part.hasFinal || part.isCancelled
      ? undefined
      : this.o.batch[position]?.request
  }

  /** Finds the position of a request by its key; undefined if the request belongs to another execution. */
  positionOf(key: number): number | undefined {
    const position = key - this.o.firstKey
    return this.#parts[position] === undefined ? undefined : position
  }

  /** Notes that the model has returned. @param times - of the execution. */
  returned(times: ExecutionTimes): void {
    this.#times = times
    this.hasReturned = true
    if (this.#unanswered > 0) this.o.returned()
    this.#endIfDone()
  }

  /** Answers a request with the response that the model returned for it, which is its last. */
  answer(position: number, content: ResponseContent): void {
    const part = this.#parts[position]
    if (part === undefined || part.hasFinal) return
    const isSecond = part.held !== undefined && content.error === undefined
    this.#deliver(part, position, isSecond ? TWO_RESPONSES : content, true)
  }

  /** Adds the times of a response that came through a sender. `inputNs` replaces the earlier value, `outputNs` adds up. */
  count(position: number, inputNs: number, outputNs: number): void {
    const part = this.#parts[position]
    if (part === undefined) return
    part.inputNs = inputNs
    part.outputNs += outputNs
  }

  /** Takes a response that came through a sender. @param content - undefined for an end without a response. */
  stream(position: number, content: ResponseContent | undefined, isFinal: boolean): void {
    const part = this.#parts[position]
    if (part === undefined || part.hasFinal) return
    if (this.o.isDecoupled || content?.error !== undefined) {
      this.#deliver(part, position, content ?? EMPTY, isFinal)
      return
    }
    if (content !== undefined && part.held === undefined) {
      part.held = { index: 0, final: true, ...content }
      part.giveBack = content.retain?.()
    }
    if (isFinal) this.#deliver(part, position, part.held ?? EMPTY, true)
  }

  /** Gives a request back that the model wants again. No further response for it comes here. */
  again(position: number): void {
    const part = this.#parts[position]
    if (part === undefined || part.hasFinal) return
    // A model that is not decoupled has answered with that.
    if (part.held !== undefined) return this.#deliver(part, position, part.held, true)
    part.hasFinal = true
    this.#unanswered -= 1
    const entry = this.o.batch[position]
    entry?.again?.(entry.request)
  }

  /** Tells whether the sink of a request is ready, as `ready` of ResponseSink. */
  ready(position: number): Promise<void> | undefined {
    return this.o.batch[position]?.sink.ready?.()
  }

  /** Fails all requests that have no final response. */
  fail(error: ServeError): void {
    this.#parts.forEach((part, position) => {
      if (!part.hasFinal) this.#deliver(part, position, { ...EMPTY, error }, true)
    })
    this.hasReturned = true
    this.#endIfDone()
  }

  #deliver(part: Part, position: number, content: ResponseContent, isFinal: boolean): void {
    const { error, ...response } = content
    const final = isFinal || error !== undefined
    part.hasFinal = final
    const index = part.sent++
    if (final) this.#unanswered -= 1
    const sink = this.o.batch[position]?.sink
    const times = final && this.o.isDecoupled ? { times: this.#timesOf(part) } : {}
    if (error === undefined) sink?.send({ ...response, index, final, ...times })
    else sink?.fail(error, 'maybe')
    part.giveBack?.()
    part.giveBack = undefined
    this.#endIfDone()
  }

  /** Times of a request that may be answered before its execution is over. */
  #timesOf({ inputNs, outputNs }: Part): StepTimes {
    const computeInputNs = inputNs + this.o.copyNs()
    return { ...NO_TIMES, computeInputNs, computeOutputNs: outputNs }
  }

  #endIfDone(): void {
    if (this.#unanswered > 0 || !this.hasReturned || this.#hasEnded) return
    this.#hasEnded = true
    this.o.ended(this.#times)
  }
}

const EMPTY: ResponseContent = { outputs: [], parameters: NO_PARAMETERS }
/** The model sent a response without the final flag, and returned another one. The text is Triton's. */
const TWO_RESPONSES: ResponseContent = {
  ...EMPTY,
  error: new ServeError('RESPONSE_INVALID', 'expected a single response, got 2'),
}

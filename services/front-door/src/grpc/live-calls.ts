import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { type CallScopeOptions, type Clock, openCallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Admission } from '../admission.ts'
import type { Gate } from '../inference-backend.ts'
import { readTrace } from '../request/trace-headers.ts'
import { answerError } from './answer-error.ts'
import type { DirectInfer } from './direct-infer.ts'
import { type StreamHandler, streamOf } from './grpc-internals.ts'
import { parseGrpcTimeout } from './grpc-timeout.ts'
import { LiveCall } from './live-call.ts'
import type { GrpcLog } from './log-events.ts'
import { WriteWatch } from './write-watch.ts'

export interface LiveCallsOptions {
  readonly clock: Clock
  readonly admission: Admission
  readonly gate: Gate
  /** Paths of the calls that take a place in the admission: those with large messages. */
  readonly admittedPaths: ReadonlySet<string>
  readonly maxMessageBytes: number
  /** What answers calls without grpc-js. */
  readonly direct: DirectInfer
  readonly writeTimeoutMs: number
  readonly log: GrpcLog
}

/** All calls of one server that are not over. Every stream passes here before grpc-js sees it. */
export class LiveCalls {
  readonly #o: LiveCallsOptions
  readonly #calls = new Set<LiveCall>()
  readonly #byStream = new WeakMap<ServerHttp2Stream, LiveCall>()
  readonly #writeWatch: WriteWatch
  #onIdle: (() => void)[] = []

  constructor(o: LiveCallsOptions) {
    this.#o = o
    const { clock, writeTimeoutMs: timeoutMs, log } = o
    this.#writeWatch = new WriteWatch({
      clock,
      timeoutMs,
      calls: () => [...this.#calls],
      onCutOff: () => log.answerNotTaken(timeoutMs),
    })
  }

  get size(): number {
    return this.#calls.size
  }

  /** The call of a handler's `call` object. */
  of(call: object): LiveCall {
    const live = this.#byStream.get(streamOf(call))
    if (live === undefined) throw new ServeError('INTERNAL', 'bug: a call came past the admission')
    return live
  }

  /** Admits a stream and hands it to whoever answers it, or refuses it at once. */
  readonly accept = (
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    next: StreamHandler,
  ): void => {
    let call: LiveCall
    try {
      call = this.#open(stream, headers)
    } catch (error) {
      // A refused stream may still fail below us; who sent it was answered.
      stream.on('error', ignoreStreamError)
      answerError(stream, ServeError.from(error))
      return
    }
    if (this.#o.direct.takes(headers)) {
      this.#o.direct.serve(stream, call)
      return
    }
    this.#byStream.set(stream, call)
    stream.on('data', call.onData)
    next(stream, headers)
  }

  /** The server takes no more requests, neither new calls nor on open streams. */
  stop(): void {
    for (const call of this.#calls) call.stop()
  }

  failAll(error: ServeError): void {
    for (const call of this.#calls) call.fail(error)
  }

  /** Watches no answers any more; the connections are gone. */
  close(): void {
    this.#writeWatch.close()
  }

  /** Calls back when no call is left, at once if there is none. */
  whenIdle(callback: () => void): void {
    if (this.#calls.size === 0) callback()
    else this.#onIdle.push(callback)
  }

  #open(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): LiveCall {
    const backend = this.#o.gate(headers)
    const scope = openCallScope(this.#scopeOptions(headers))
    const isAdmitted = this.#o.admittedPaths.has(headers[':path'] ?? '')
    const ticket = isAdmitted ? this.#o.admission.admit() : undefined
    const { maxMessageBytes } = this.#o
    const writeWatch = this.#writeWatch
    const call = new LiveCall({ stream, scope, backend, ticket, maxMessageBytes, writeWatch })
    this.#calls.add(call)
    stream.on('close', () => this.#close(call))
    if (scope.context.deadlineAt !== undefined) watchDeadline(call)
    return call
  }

  #close(call: LiveCall): void {
    this.#calls.delete(call)
    call.close()
    if (this.#calls.size > 0 || this.#onIdle.length === 0) return
    const waiting = this.#onIdle
    this.#onIdle = []
    for (const callback of waiting) callback()
  }

  #scopeOptions(headers: IncomingHttpHeaders): CallScopeOptions {
    const options: { -readonly [Key in keyof CallScopeOptions]: CallScopeOptions[Key] } = {
      clock: this.#o.clock,
    }
    const timeout = headers['grpc-timeout']
    if (timeout !== undefined) {
      options.remainingMs = parseGrpcTimeout(String(timeout))
      // grpc-js would answer by itself, without our details, and takes long timeouts for negative ones.
      delete headers['grpc-timeout']
    }
    const trace = readTrace(headers)
    if (trace !== undefined) options.trace = trace
    return options
  }
}

function ignoreStreamError(): void {
  // See accept().
}

/** Reading the signal starts the deadline's timer, so only calls that have a deadline pay for one. */
function watchDeadline(call: LiveCall): void {
  const { signal } = call.context
  const onAbort = () => call.fail(ServeError.from(signal.reason))
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
}

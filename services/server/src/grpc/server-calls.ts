import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { type Clock, openCallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Admission } from '../admission.ts'
import type { BackendSelector, InferenceBackend } from '../inference-backend.ts'
import { readTrace } from '../request/trace-headers.ts'
import { parseGrpcTimeout } from './grpc-timeout.ts'
import type { GrpcLog } from './log-events.ts'
import type { Method } from './method.ts'
import { ServerCall, type ServerCallOptions } from './server-call.ts'
import { respondOnlyTrailers } from './status-trailers.ts'

/** Calls that take no place in the admission are small; what is above this is no request that we know. */
const CONTROL_MESSAGE_BYTES = 4 * 1024 * 1024

export interface ServerCallsOptions {
  readonly methods: readonly Method[]
  readonly backend: InferenceBackend
  /** Absent: every call reaches `backend`. */
  readonly select?: BackendSelector
  readonly admission: Admission
  readonly clock: Clock
  /** Bytes of one message, compressed or not; at most 2^31 - 1. */
  readonly maxMessageBytes: number
  /** A call whose client has not taken the answer, or the next response of a stream, within this time is cut off. */
  readonly writeTimeoutMs: number
  readonly log: GrpcLog
}

/** All calls of one server that are not over. */
export class ServerCalls {
  readonly #o: ServerCallsOptions
  readonly #methods: ReadonlyMap<string | undefined, Method>
  readonly #calls = new Set<ServerCall>()
  readonly #writeWatch: WriteWatch
  #onIdle: (() => void)[] = []

  constructor(o: ServerCallsOptions) {
    this.#o = o
    this.#methods = new Map(o.methods.map((method) => [method.path, method]))
    const { clock, writeTimeoutMs: timeoutMs, log } = o
    this.#writeWatch = new WriteWatch({
      clock,
      timeoutMs,
      calls: this.#calls,
      onCutOff: () => log.answerNotTaken(timeoutMs),
    })
  }

  get size(): number {
    return this.#calls.size
  }

  /** Admits a stream and has its method serve it, or refuses it at once. */
  readonly accept = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void => {
    // What goes wrong below us closes the stream, and its call hears of that.
    stream.on('error', ignoreStreamError)
    if (!String(headers['content-type']).startsWith('application/grpc')) {
      stream.respond({ ':status': 415 }, { endStream: true })
      stream.resume()
      return
    }
    try {
      const { select, backend: only } = this.#o
      const backend = select === undefined ? only : select(headers)
      const path = headers[':path']
      const method = this.#methods.get(path)
      if (method === undefined) {
        throw new ServeError('UNSUPPORTED', `The server does not implement the method ${path}`)
      }
      const { serve } = method
      const call = this.#open(method, { stream, headers, backend })
      if (typeof serve === 'function') serve(call)
      else call.answerOne(serve)
    } catch (error) {
      respondOnlyTrailers(stream, ServeError.from(error))
    }
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

  #open(
    { isAdmitted }: Method,
    o: Pick<ServerCallOptions, 'stream' | 'headers' | 'backend'>,
  ): ServerCall {
    const { clock, admission, maxMessageBytes, log } = this.#o
    const { stream, headers, backend } = o
    const timeout = headers['grpc-timeout']
    const scope = openCallScope({
      clock,
      remainingMs: timeout === undefined ? undefined : parseGrpcTimeout(String(timeout)),
      trace: headers['traceparent'] === undefined ? undefined : readTrace(headers),
    })
    const call = new ServerCall({
      stream,
      headers,
      backend,
      scope,
      ticket: isAdmitted ? admission.admit() : undefined,
      maxMessageBytes: isAdmitted ? maxMessageBytes : CONTROL_MESSAGE_BYTES,
      onOffer: this.#writeWatch.begin,
      log,
    })
    this.#calls.add(call)
    stream.on('close', () => this.#close(call))
    if (scope.context.deadlineAt !== undefined) watchDeadline(call)
    return call
  }

  #close(call: ServerCall): void {
    this.#calls.delete(call)
    call.close()
    if (this.#calls.size > 0 || this.#onIdle.length === 0) return
    const waiting = this.#onIdle
    this.#onIdle = []
    for (const callback of waiting) callback()
  }
}

function ignoreStreamError(): void {
  // See accept().
}

/** Reading the signal starts the deadline's timer, so only calls that have a deadline pay for one. */
function watchDeadline(call: ServerCall): void {
  const { signal } = call.context
  const onAbort = () => call.fail(ServeError.from(signal.reason))
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
}

interface WriteWatchOptions {
  readonly clock: Clock
  readonly timeoutMs: number
  readonly calls: Iterable<Pick<ServerCall, 'offeredAt' | 'cutOff'>>
  readonly onCutOff: () => void
}

/**
 * Cuts off clients that do not take their answers: with a flow-control window of 0 they would hold them for ever. All calls
 * share one timer, since a timer for each would be paid for by every small call, and is there only while there are answers.
 */
export class WriteWatch {
  readonly #o: WriteWatchOptions
  #stopTimer: (() => void) | undefined
  #isClosed = false

  constructor(o: WriteWatchOptions) {
    this.#o = o
  }

  /** Says that a client has something to take from now on. @returns now, for `offeredAt`. */
  readonly begin = (): number => {
    const { clock, timeoutMs } = this.#o
    if (!this.#isClosed) this.#stopTimer ??= clock.setTimer(timeoutMs, this.#check)
    return clock.now()
  }

  /** No timer runs from now on. */
  close(): void {
    this.#isClosed = true
    this.#stopTimer?.()
  }

  readonly #check = (): void => {
    const { clock, timeoutMs, calls, onCutOff } = this.#o
    this.#stopTimer = undefined
    const now = clock.now()
    let oldest = Number.POSITIVE_INFINITY
    for (const call of calls) {
      const { offeredAt } = call
      if (offeredAt === undefined) continue
      if (now - offeredAt >= timeoutMs) {
        onCutOff()
        call.cutOff(timeoutMs)
      } else oldest = Math.min(oldest, offeredAt)
    }
    if (oldest === Number.POSITIVE_INFINITY) return
    this.#stopTimer = clock.setTimer(oldest + timeoutMs - now, this.#check)
  }
}

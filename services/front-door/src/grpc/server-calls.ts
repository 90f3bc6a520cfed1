import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { type CallScopeOptions, type Clock, openCallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Admission } from '../admission.ts'
import type { Gate } from '../inference-backend.ts'
import { readTrace } from '../request/trace-headers.ts'
import { parseGrpcTimeout } from './grpc-timeout.ts'
import type { GrpcLog } from './log-events.ts'
import type { Method } from './method.ts'
import { ServerCall } from './server-call.ts'
import { respondOnlyTrailers } from './status-trailers.ts'
import { WriteWatch } from './write-watch.ts'

/** Calls that take no place in the admission are small; what is above this is no request that we know. */
const CONTROL_MESSAGE_BYTES = 4 * 1024 * 1024

export interface ServerCallsOptions {
  readonly clock: Clock
  readonly admission: Admission
  readonly gate: Gate
  readonly methods: readonly Method[]
  readonly maxMessageBytes: number
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
      calls: () => [...this.#calls],
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
      const backend = this.#o.gate(headers)
      const path = headers[':path']
      const method = this.#methods.get(path)
      if (method === undefined) {
        throw new ServeError('UNSUPPORTED', `The server does not implement the method ${path}`)
      }
      method.serve(this.#open(method, { stream, headers, backend }))
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
    o: Pick<ConstructorParameters<typeof ServerCall>[0], 'stream' | 'headers' | 'backend'>,
  ): ServerCall {
    const { admission, maxMessageBytes, log } = this.#o
    const scope = openCallScope(this.#scopeOptions(o.headers))
    const call = new ServerCall({
      stream: o.stream,
      headers: o.headers,
      backend: o.backend,
      scope,
      ticket: isAdmitted ? admission.admit() : undefined,
      maxMessageBytes: isAdmitted ? maxMessageBytes : CONTROL_MESSAGE_BYTES,
      writeWatch: this.#writeWatch,
      log,
    })
    this.#calls.add(call)
    o.stream.on('close', () => this.#close(call))
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

  #scopeOptions(headers: IncomingHttpHeaders): CallScopeOptions {
    const options: { -readonly [Key in keyof CallScopeOptions]: CallScopeOptions[Key] } = {
      clock: this.#o.clock,
    }
    const timeout = headers['grpc-timeout']
    if (timeout !== undefined) options.remainingMs = parseGrpcTimeout(String(timeout))
    if (headers['traceparent'] !== undefined) {
      const trace = readTrace(headers)
      if (trace !== undefined) options.trace = trace
    }
    return options
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

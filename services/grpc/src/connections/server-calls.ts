import type { Socket } from 'node:net'
import { type Clock, openCallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { ServerStream } from '@tutti/http'
import {
  Admission,
  type AdmissionBounds,
  type AdmissionClass,
  type BackendSelector,
  type ClientRequests,
  compileBounds,
  type InferenceBackend,
  MAX_CONTROL_BYTES,
  readTrace,
  STEPS_HEADER,
  tellSteps,
} from '@tutti/serving'
import { respondNoGrpc, respondOnlyTrailers } from '../call/answer-headers.ts'
import type { GrpcLog } from '../call/log-events.ts'
import { ServerCall } from '../call/server-call.ts'
import { type Method, unknownMethod } from '../methods/method.ts'
import { MAX_HEADER_BYTES, tooLargeHeaders } from './grpc-caller.ts'
import { parseGrpcTimeout } from './grpc-timeout.ts'
import { endLongestWaiting, MAX_WAITING } from './waiting-calls.ts'

/** Bounds of all control calls of a listener together: calls without tensors or files, which must work under overload too. */
export const CONTROL_BOUNDS: AdmissionBounds = compileBounds({
  maxRequests: 4096,
  maxBytes: 2 ** 25,
  // A connection may have all that others do not need.
  maxWaitingBytes: 2 ** 25,
  maxWaitingBytesPerClient: 2 ** 25,
})
const UNBOUNDED = { maxRequests: Infinity, maxBytes: Infinity }

export interface ServerCallsOptions {
  readonly methods: readonly Method[]
  readonly backend: InferenceBackend
  /** Selector of the backend of each call; absent: every call reaches `backend`. */
  readonly select?: BackendSelector
  readonly admission: Admission
  readonly clock: Clock
  /** Bytes of one message, compressed or not; at most 2^31 - 1. */
  readonly maxMessageBytes: number
  readonly requests: ClientRequests
  readonly log: GrpcLog
}

/** All calls of one server that are not over. */
export class ServerCalls implements Iterable<ServerCall> {
  readonly #options: ServerCallsOptions
  readonly #methods: ReadonlyMap<string | undefined, Method>
  /** In no order: no Set, as docs/decisions/no-sets-of-requests.md says. */
  readonly #calls: ServerCall[] = []
  #opened = 0
  readonly #pools: Readonly<Record<AdmissionClass, Admission>>
  readonly #onIdle: (() => void)[] = []
  #isStopping = false

  constructor(o: ServerCallsOptions) {
    this.#options = o
    this.#pools = {
      request: o.admission,
      control: new Admission(CONTROL_BOUNDS, undefined, o.admission.ended),
      none: new Admission(UNBOUNDED),
    }
    this.#methods = new Map(o.methods.map((method) => [method.definition.path, method]))
  }

  /** Opens the call of a stream and has its method serve it, or refuses it at once. */
  readonly accept = (stream: ServerStream, socket: Socket): void => {
    const { headers } = stream
    let method: Method | undefined
    const isGrpc = String(headers['content-type']).startsWith('application/grpc')
    if (!isGrpc) return respondNoGrpc(stream)
    try {
      if (stream.headerBytes > MAX_HEADER_BYTES) throw tooLargeHeaders(stream)
      const path = headers[':path']
      method = this.#methods.get(path)
      const selected =
        this.#options.select?.({ headers, path, group: method?.group, socket }) ??
        this.#options.backend
      const asked = headers[STEPS_HEADER]
      const backend = asked === undefined ? selected : tellSteps(selected, asked)
      if (method === undefined) throw unknownMethod(path)
      const call = this.#open({ stream, socket, backend }, method)
      method.serve(call, method.definition)
      if (this.#isStopping) call.stop()
    } catch (thrown) {
      const error = ServeError.from(thrown)
      respondOnlyTrailers(stream, error)
      if (method?.group === 'inference')
        this.#options.requests.open(readTrace(headers)).ended(error)
    }
  };

  [Symbol.iterator](): Iterator<ServerCall> {
    return [...this.#calls].values()
  }

  /** Tells all open calls, and each call that opens later, that the server stops and takes no more requests. */
  stop(): void {
    this.#isStopping = true
    for (const call of this) call.stop()
  }

  /** Calls back when no call is left, at once if there is none. */
  whenIdle(callback: () => void): void {
    if (this.#calls.length === 0) callback()
    else this.#onIdle.push(callback)
  }

  #open(of: Pick<ServerCall, 'stream' | 'socket' | 'backend'>, method: Method): ServerCall {
    const { headers } = of.stream
    const { clock, admission, maxMessageBytes, requests, log } = this.#options
    const timeout = headers['grpc-timeout']
    const ticket = this.#pools[method.admission].open(of.socket, of.backend.share)
    const scope = openCallScope({
      clock,
      memory: ticket,
      remainingMs: timeout === undefined ? undefined : parseGrpcTimeout(timeout),
      trace: headers['traceparent'] === undefined ? undefined : readTrace(headers),
    })
    const call = new ServerCall({
      ...of,
      scope,
      ticket,
      maxMessageBytes: method.admission === 'request' ? maxMessageBytes : MAX_CONTROL_BYTES,
      memory: method.memory,
      clock,
      requests,
      log,
      onClosed: this.#closed,
    })
    of.stream.handler = call
    call.number = this.#opened++
    call.place = this.#calls.push(call) - 1
    if (call.place >= MAX_WAITING + admission.bounds.maxRequests) {
      endLongestWaiting(this.#calls, admission.ended)
    }
    if (timeout !== undefined) call.watchDeadline()
    return call
  }

  readonly #closed = (call: ServerCall): void => {
    const last = this.#calls.pop() ?? call
    if (last !== call) this.#calls[call.place] = last
    last.place = call.place
    if (this.#calls.length > 0 || this.#onIdle.length === 0) return
    for (const callback of this.#onIdle.splice(0)) callback()
  }
}

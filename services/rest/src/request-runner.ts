import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import {
  type CallScope,
  LoopTurns,
  openCallScope,
  requestFields,
  type TraceParent,
} from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { MAX_CONTROL_BYTES, readTrace, STEPS_HEADER, tellSteps } from '@tutti/serving'
import { errorReply, type RestReply } from './answers/rest-reply.ts'
import { writeMore } from './answers/write-more.ts'
import { parseTimeout, RestCall, type RestCallOptions } from './call/rest-call.ts'
import type { RestRoute } from './call/rest-route.ts'
import { REST_EVENTS } from './rest-events.ts'
import type { CompiledRestOptions } from './rest-options.ts'

type Parameters = RestCallOptions['parameters']

/** One request that is in flight. */
interface InFlight {
  readonly scope: CallScope
  readonly call: RestCall
  readonly response: ServerResponse
  /** Its place in the list, which the last one takes when it leaves. */
  at: number
}

/** Runs requests: gives each its scope, writes its one answer, and knows which are in flight. */
export class RequestRunner {
  readonly #o: CompiledRestOptions
  readonly #turns = new LoopTurns()
  readonly #inFlight: InFlight[] = []
  readonly #idle: (() => void)[] = []
  #isStopping = false

  constructor(o: CompiledRestOptions) {
    this.#o = o
  }

  /** Refuses requests from now on with SERVER_STOPPING, except those of the admission class `none`, such as health. */
  stop(): void {
    this.#isStopping = true
  }

  /** Cancels all requests in flight, which are answered with SERVER_STOPPING. */
  failAll(): void {
    for (const { scope } of this.#inFlight.slice()) scope.cancel(serverStopping())
  }

  /** Ends the JSON thread. A body that it parses fails. */
  close(): Promise<void> {
    return this.#o.json.close()
  }

  /** The names of the connections on which a request is in work. */
  busyConnections(): Set<string> {
    const busy = this.#inFlight.filter(({ call }) => call.isInWork)
    return new Set(busy.map(({ call }) => call.connection))
  }

  /** Checks whether an answer has begun on a connection: nothing else may be written there then. */
  isAnswering(socket: Duplex): boolean {
    return this.#inFlight.some(({ response }) => response.socket === socket && response.headersSent)
  }

  /** Calls back when no request is in flight, at once if there is none. */
  whenIdle(callback: () => void): void {
    if (this.#inFlight.length === 0) callback()
    else this.#idle.push(callback)
  }

  /** Answers a request with what the route says. Never rejects. */
  async run(
    route: RestRoute,
    parameters: Parameters,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    // Its 'close' is past, which everything below waits for.
    if (response.destroyed) return
    let call: RestCall | undefined
    const { model } = parameters
    const trace = readTrace(request.headers)
    const observed = isInference(route) ? this.#o.requests.open(trace, model) : undefined
    try {
      if (this.#isStopping && route.admission !== 'none') throw serverStopping()
      call = this.#open(route, { parameters, trace, observed }, request, response)
      const reply = await route.answer(call)
      this.reply(request, response, reply)
      // The end of others is that of their last part, or the client's.
      if (reply.more === undefined && !response.destroyed) observed?.ended()
    } catch (error) {
      const failure = ServeError.from(error)
      this.#logFailure(failure, request, call)
      this.reply(request, response, errorReply(failure))
      observed?.ended(failure)
    }
  }

  #open(
    { path: route, group, admission: admissionClass }: RestRoute,
    of: Pick<RestCallOptions, 'parameters' | 'observed'> & {
      readonly trace: TraceParent | undefined
    },
    request: IncomingMessage,
    response: ServerResponse,
  ): RestCall {
    const { clock, select, admission, json } = this.#o
    const maxInputBytes =
      admissionClass === 'request'
        ? this.#o.maxInputBytes
        : Math.min(MAX_CONTROL_BYTES, this.#o.maxInputBytes)
    const { headers, rawHeaders, url: path, socket } = request
    const restricted = group === 'page' ? undefined : group
    const selected = select({ headers, rawHeaders, path, route, group: restricted, socket })
    const backend = headers[STEPS_HEADER] === undefined ? selected : tellSteps(selected)
    const scope = openCallScope({
      clock,
      remainingMs: parseTimeout(request),
      trace: of.trace,
    })
    const turns = this.#turns
    const call = new RestCall({
      request,
      response,
      ...of,
      backend,
      scope,
      admission,
      maxInputBytes,
      json,
      turns,
    })
    const entry = { scope, call, response, at: this.#inFlight.length }
    this.#inFlight.push(entry)
    response.once('close', () => this.#over(entry, response.writableFinished))
    return call
  }

  /** Tensors of the request and of the answer are held until here: the last byte is out, or the client has left. */
  #over({ scope, call, at }: InFlight, isAnswered: boolean): void {
    const error = isAnswered ? undefined : new ServeError('CANCELLED', 'the client went away')
    call.close(error)
    if (error !== undefined) scope.cancel(error)
    scope.close()
    const last = this.#inFlight.pop()
    if (last !== undefined && last.scope !== scope) {
      last.at = at
      this.#inFlight[at] = last
    }
    if (this.#inFlight.length > 0) return
    for (const notify of this.#idle.splice(0)) notify()
  }

  /** Writes an answer. Node reads and drops the rest of a body that was not read. */
  reply(request: IncomingMessage, response: ServerResponse, reply: RestReply): void {
    if (response.headersSent || response.destroyed) return void reply.more?.return(undefined)
    const { clock, writeTimeoutMs: timeoutMs } = this.#o
    const { status, headers, byteLength, more } = reply
    const all: OutgoingHttpHeaders = { ...headers }
    if (more === undefined) all['content-length'] = byteLength
    if (this.#isStopping) all.connection = 'close'
    response.writeHead(status, all)
    if (more !== undefined) return void writeMore(response, more, { clock, timeoutMs })
    if (request.method === 'HEAD' || byteLength === 0) response.end()
    else writeParts(response, reply)
    // Most answers are out by now.
    if (response.writableFinished || response.writableLength === 0) return
    const stopTimer = clock.setTimer(timeoutMs, () => response.destroy())
    response.once('close', stopTimer)
  }

  #logFailure(error: ServeError, { url: path }: IncomingMessage, call?: RestCall): void {
    const { log } = this.#o
    const fields = () => ({
      path,
      ...requestFields(call?.requestId ?? '', call?.context.trace),
      error,
    })
    if (error.reason === 'INTERNAL') log.error(REST_EVENTS.requestFailed, fields())
    else if (log.isDebug) log.debug(REST_EVENTS.requestFailed, fields())
  }
}

/** Answers up to this go out as one string with their head, which takes 7 % less processor time of an empty node:http server. */
const MAX_JOINED_BYTES = 8192

function writeParts(response: ServerResponse, { parts, byteLength }: RestReply): void {
  // Ended only once it is written: Node counts a connection whose answer was ended as idle, and cuts it when the server
  // stops, be the answer out or not.
  const end = (): void => void response.end()
  if (byteLength <= MAX_JOINED_BYTES) {
    // A character of latin1 is a byte.
    const text = parts.map((part) => latin1Of(part)).join('')
    response.cork()
    response.write(text, 'latin1', end)
    return response.uncork()
  }
  const filled = parts.filter((part) => part.byteLength > 0)
  const last = filled.pop()
  response.cork()
  for (const part of filled) response.write(part)
  if (last !== undefined) response.write(last, end)
  response.uncork()
}

function latin1Of({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('latin1')
}

function serverStopping(): ServeError {
  return new ServeError('SERVER_STOPPING', 'Server exiting')
}

function isInference({ group, admission }: RestRoute): boolean {
  return group === 'inference' || (group === 'page' && admission === 'request')
}

import type { IncomingMessage, ServerResponse } from 'node:http'
import { type CallScope, openCallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { readTrace } from '../request/trace-headers.ts'
import { JsonThread } from './json-thread.ts'
import { LoopTurns } from './loop-turns.ts'
import { parseTimeout, RestCall, type RestCallOptions } from './rest-call.ts'
import { REST_EVENTS } from './rest-events.ts'
import type { CompiledRestOptions } from './rest-options.ts'
import { errorReply, type RestReply } from './rest-reply.ts'
import type { RestRoute } from './rest-route.ts'
import { writeMore } from './write-more.ts'

type Parameters = RestCallOptions['parameters']

/** Runs requests: gives each its scope, writes its one answer, and knows which are in flight. */
export class RequestRunner {
  readonly #o: CompiledRestOptions
  readonly #json = new JsonThread()
  readonly #turns = new LoopTurns()
  readonly #inFlight = new Map<CallScope, RestCall>()
  readonly #idle: (() => void)[] = []
  #isStopping = false

  constructor(o: CompiledRestOptions) {
    this.#o = o
  }

  /** From now on only health answers. */
  stop(): void {
    this.#isStopping = true
  }

  /** Cancels what is in flight, to be answered SERVER_STOPPING. */
  failAll(): void {
    for (const scope of this.#inFlight.keys()) scope.cancel(serverStopping())
  }

  /** Ends the thread; what it works on fails. */
  close(): Promise<void> {
    return this.#json.close()
  }

  /** The names of the connections on which a request is in work. */
  busyConnections(): Set<string> {
    const calls = [...this.#inFlight.values()].filter(({ isInWork }) => isInWork)
    return new Set(calls.map(({ connection }) => connection))
  }

  /** Calls back when no request is in flight, at once if there is none. */
  whenIdle(callback: () => void): void {
    if (this.#inFlight.size === 0) callback()
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
    try {
      if (this.#isStopping && route.isHealth !== true) throw serverStopping()
      const call = this.#open(route, parameters, request, response)
      this.reply(request, response, await route.answer(call))
    } catch (error) {
      const failure = ServeError.from(error)
      this.#logFailure(failure, request)
      this.reply(request, response, errorReply(failure))
    }
  }

  #open(
    { path: route }: RestRoute,
    parameters: Parameters,
    request: IncomingMessage,
    response: ServerResponse,
  ): RestCall {
    const { clock, select, admission, maxInputBytes } = this.#o
    const { headers, url: path, socket } = request
    const backend = select({ headers, path, route, socket })
    const scope = openCallScope({
      clock,
      remainingMs: parseTimeout(request),
      trace: readTrace(headers),
    })
    const { context } = scope
    const json = this.#json
    const turns = this.#turns
    const call = new RestCall({
      request,
      parameters,
      backend,
      context,
      admission,
      maxInputBytes,
      json,
      turns,
    })
    this.#inFlight.set(scope, call)
    response.once('close', () => {
      // Tensors of the request and of the answer are held until the last byte is out.
      call.close()
      if (!response.writableFinished) {
        scope.cancel(new ServeError('CANCELLED', 'the client went away'))
      }
      scope.close()
      this.#inFlight.delete(scope)
      if (this.#inFlight.size > 0) return
      for (const notify of this.#idle.splice(0)) notify()
    })
    return call
  }

  /** Writes an answer. Node reads and drops the rest of a body that was not read. */
  reply(request: IncomingMessage, response: ServerResponse, reply: RestReply): void {
    if (response.headersSent || response.destroyed) return void reply.more?.return(undefined)
    const { clock, writeTimeoutMs: timeoutMs } = this.#o
    const { status, headers, byteLength, more } = reply
    response.writeHead(status, {
      ...headers,
      ...(more === undefined && { 'content-length': byteLength }),
      ...(this.#isStopping ? { connection: 'close' } : {}),
    })
    if (more !== undefined) return void writeMore(response, more, { clock, timeoutMs })
    const stopTimer = clock.setTimer(timeoutMs, () => response.destroy())
    response.once('close', stopTimer)
    const parts = request.method === 'HEAD' ? [] : reply.parts.filter((part) => part.length > 0)
    const last = parts.pop()
    if (last === undefined) {
      response.end()
      return
    }
    response.cork()
    for (const part of parts) response.write(part)
    // Ended only once it is written: Node counts a connection whose answer was ended as idle, and cuts it when the server
    // stops, be the answer out or not.
    response.write(last, () => response.end())
    response.uncork()
  }

  #logFailure(error: ServeError, { url: path }: IncomingMessage): void {
    const { log } = this.#o
    if (error.reason === 'INTERNAL') log.error(REST_EVENTS.requestFailed, { error, path })
    else if (log.isDebug) log.debug(REST_EVENTS.requestFailed, { error, path })
  }
}

function serverStopping(): ServeError {
  return new ServeError('SERVER_STOPPING', 'Server exiting')
}

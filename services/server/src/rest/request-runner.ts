import type { IncomingMessage, ServerResponse } from 'node:http'
import { type CallScope, openCallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { readTrace } from '../request/trace-headers.ts'
import { ACCEPTED_ENCODINGS, ENCODING_HEADER } from './content-encoding.ts'
import { openRestCall, parseTimeout } from './rest-call.ts'
import { REST_EVENTS } from './rest-events.ts'
import type { CompiledRestOptions } from './rest-options.ts'
import { errorReply, type RestReply } from './rest-reply.ts'
import type { RestRoute } from './routes.ts'

/** How long the rest of a body is thrown away behind an early answer, before the connection is cut. */
const DISCARD_MS = 5000

type Parameters = Readonly<Record<string, string | undefined>>

/** Runs requests: gives each its scope, writes its one answer, and knows which are in flight. */
export class RequestRunner {
  readonly #o: CompiledRestOptions
  readonly #scopes = new Set<CallScope>()
  readonly #idle: (() => void)[] = []
  #inFlight = 0
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
    for (const scope of this.#scopes) {
      scope.cancel(new ServeError('SERVER_STOPPING', 'Server exiting'))
    }
  }

  /** Calls back when no request is in flight, at once if there is none. */
  whenIdle(callback: () => void): void {
    if (this.#inFlight === 0) callback()
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
    if (this.#isStopping && route.isHealth !== true) {
      this.reply(request, response, errorReply(new ServeError('SERVER_STOPPING', 'Server exiting')))
      return
    }
    this.#begin(response)
    try {
      await this.#answer(route, parameters, request, response)
    } catch (error) {
      const failure = ServeError.from(error)
      this.#logFailure(failure, request)
      this.reply(request, response, toReply(failure))
    }
  }

  async #answer(
    route: RestRoute,
    parameters: Parameters,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { clock, select } = this.#o
    const backend = select(request.headers)
    const scope = openCallScope({
      clock,
      remainingMs: parseTimeout(request),
      trace: readTrace(request.headers),
    })
    const opened = openRestCall({
      ...this.#o,
      backend,
      request,
      parameters,
      context: scope.context,
    })
    this.#scopes.add(scope)
    response.once('close', () => {
      // Tensors of the request and of the answer are held until the last byte is out.
      opened.close()
      this.#scopes.delete(scope)
      if (!response.writableFinished) {
        scope.cancel(new ServeError('CANCELLED', 'the client went away'))
      }
      scope.close()
    })
    this.reply(request, response, await route.answer(opened.call))
  }

  /** Writes an answer. The rest of a body that nobody read is thrown away for a while, then the connection is cut. */
  reply(request: IncomingMessage, response: ServerResponse, reply: RestReply): void {
    if (response.headersSent || response.destroyed) return
    if (!request.complete) this.#discardRest(request)
    const stopTimer = this.#o.clock.setTimer(this.#o.writeTimeoutMs, () => response.destroy())
    response.once('close', stopTimer)
    response.writeHead(reply.status, {
      ...reply.headers,
      'content-length': reply.byteLength,
      ...(this.#isStopping ? { connection: 'close' } : {}),
    })
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

  #discardRest(request: IncomingMessage): void {
    const stopTimer = this.#o.clock.setTimer(DISCARD_MS, () => request.socket.destroy())
    request.once('end', stopTimer)
    request.once('close', stopTimer)
    request.resume()
  }

  #begin(response: ServerResponse): void {
    this.#inFlight += 1
    response.once('close', () => {
      this.#inFlight -= 1
      if (this.#inFlight > 0) return
      for (const notify of this.#idle.splice(0)) notify()
    })
  }

  #logFailure(error: ServeError, request: IncomingMessage): void {
    const { log } = this.#o
    if (error.reason === 'INTERNAL') {
      log.error(REST_EVENTS.requestFailed, { error, path: request.url })
    } else if (log.isDebug) {
      log.debug(REST_EVENTS.requestFailed, { error, path: request.url })
    }
  }
}

function toReply(error: ServeError): RestReply {
  const reply = errorReply(error)
  if (error.details.field !== ENCODING_HEADER) return reply
  return { ...reply, headers: { ...reply.headers, 'accept-encoding': ACCEPTED_ENCODINGS } }
}

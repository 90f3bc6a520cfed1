import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Agent, createServer, type Server, request as sendRequest } from 'node:https'
import { type AddressInfo, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { resetSocket } from '@tutti/chassis/testing'
import type { ClusterAccess } from '../transport/cluster-access.ts'
import {
  type CountedWrite,
  type CountedWrites,
  createCountedWrites,
  type WriteFilter,
  type WriteHooks,
} from './counted-writes.ts'
import {
  answerFault,
  createFaultRules,
  type Fault,
  type FaultRule,
  type FaultRules,
  type ProxiedRequest,
  passedHeaders,
  readRequest,
} from './fault-rules.ts'
import { createPastStates, type PastState, type PastStates } from './past-states.ts'
import type { ApiServer } from './start-api-server.ts'

export interface HttpFaultProxyOptions {
  /** Tells which writes are counted; default: all but those of leases and events, which come at any time. */
  readonly isCounted?: (request: ProxiedRequest) => boolean
}

/** Starts a proxy on a free port of loopback. Close the proxy in the test's teardown, after its clients. */
export async function startHttpFaultProxy(
  target: ApiServer,
  o: HttpFaultProxyOptions = {},
): Promise<HttpFaultProxy> {
  const proxy = new HttpFaultProxy(target, o)
  await proxy.start()
  return proxy
}

interface Passing {
  readonly incoming: IncomingMessage
  readonly response: ServerResponse
  readonly request: ProxiedRequest
  readonly fault: Fault | undefined
}

/** A proxy before an API server, with the server's certificate, that produces the faults of a test. */
export class HttpFaultProxy {
  /** Number of requests so far, of all kinds. */
  requests = 0
  readonly #target: ApiServer
  readonly #writes: CountedWrites
  readonly #rules: FaultRules = createFaultRules()
  readonly #past: PastStates
  readonly #agent: Agent
  /** Under TLS, by the other end's port: TLS itself cannot reset a connection. */
  readonly #sockets = new Map<number | undefined, Socket>()
  /** Answers of watches, from the server, and whom they go to. */
  readonly #watches = new Map<ServerResponse, IncomingMessage>()
  #isFrozen = false
  #isRefusing = false
  #server: Server | undefined

  constructor(target: ApiServer, o: HttpFaultProxyOptions) {
    this.#target = target
    this.#writes = createCountedWrites(o.isCounted)
    this.#agent = new Agent({ ca: target.ca, keepAlive: true })
    this.#past = createPastStates(target.plain)
  }

  async start(): Promise<void> {
    const { certFile, keyFile } = this.#target
    const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)])
    const server = createServer({ cert, key }, (incoming, response) => {
      this.#take(incoming, response).catch(() => this.#reset(response))
    })
    this.#server = server
    server.on('connection', (socket) => {
      if (!(socket instanceof Socket)) throw new Error('bug: a connection is no socket')
      const { remotePort } = socket
      this.#sockets.set(remotePort, socket)
      socket.on('error', () => {})
      socket.once('close', () => this.#sockets.delete(remotePort))
      if (this.#isRefusing) resetSocket(socket)
    })
    server.on('tlsClientError', () => {})
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(0, '127.0.0.1', resolve)
    })
  }

  get url(): URL {
    const address: AddressInfo | string | null = this.#server?.address() ?? null
    if (address === null || typeof address === 'string') throw new Error('the proxy has no port')
    return new URL(`https://127.0.0.1:${address.port}`)
  }

  /** Counted writes that the server has answered, the oldest first. */
  get writes(): readonly CountedWrite[] {
    return this.#writes.writes
  }

  /** Number of open watches. */
  get watches(): number {
    return this.#watches.size + this.#past.watches
  }

  /** Gives the access to the API server through this proxy. @param token - default: that of a user in system:masters. */
  access(token?: string): ClusterAccess {
    return { ...this.#target.access(token), server: this.url }
  }

  /** Adds a rule for faults. @returns a function that removes the rule. */
  addRule(rule: FaultRule): () => void {
    return this.#rules.add(rule)
  }

  /** Removes all rules and hooks. */
  clear(): void {
    this.#rules.clear()
    this.#writes.clear()
  }

  /**
   * Calls the hooks around the k-th counted write from now on, 1 for the next.
   *
   * @param when - tells which writes count; default: all.
   */
  onWrite(k: number, hooks: WriteHooks, when?: WriteFilter): void {
    this.#writes.onWrite(k, hooks, when)
  }

  /** Passes nothing on to watches, old and new, until `thawWatches`; their connections stay open. */
  freezeWatches(): void {
    this.#isFrozen = true
    for (const answer of this.#watches.values()) answer.pause()
  }

  thawWatches(): void {
    this.#isFrozen = false
    for (const answer of this.#watches.values()) answer.resume()
  }

  cutWatches(): void {
    for (const response of this.#watches.keys()) this.#reset(response)
  }

  cut(): void {
    for (const socket of this.#sockets.values()) resetSocket(socket)
  }

  /** Resets every new connection, until `accept`. */
  refuse(): void {
    this.#isRefusing = true
    this.cut()
  }

  accept(): void {
    this.#isRefusing = false
  }

  /** Reads the present complete state of all objects that open watches watch, for `rewind`. */
  remember(): Promise<PastState> {
    return this.#past.remember()
  }

  /**
   * Gives the remembered state to new watches, and to lists that name a version, as a lagging server would. Later changes do not
   * come before `present`. Resets the watches that are open.
   */
  rewind(past: PastState): void {
    this.#past.rewind(past)
    this.cutWatches()
  }

  /** Ends `rewind`: ends the watches that got the old state, so that their clients go on from it with the real server. */
  present(): void {
    this.#past.present()
  }

  async close(): Promise<void> {
    this.#past.present()
    this.cut()
    this.#agent.destroy()
    await new Promise<void>((resolve) => {
      if (this.#server === undefined) resolve()
      else this.#server.close(() => resolve())
    })
  }

  async #take(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests += 1
    const request = await readRequest(incoming)
    const fault = this.#rules.take(request)
    if (fault !== undefined && !(await this.#isPassed(fault, response))) return
    if (this.#past.answer(request, response)) return
    await this.#writes.around(request, (onAnswer) =>
      this.#pass({ incoming, response, request, fault }, onAnswer),
    )
  }

  /** Carries out what comes before a request is passed on. @returns false if it is not. */
  async #isPassed(fault: Fault, response: ServerResponse): Promise<boolean> {
    if (fault.type === 'wait') await fault.until
    if (fault.type === 'reset') this.#reset(response)
    if (fault.type === 'answer' || fault.type === 'watch-error') answerFault(fault, response)
    return ['wait', 'lose'].includes(fault.type)
  }

  #reset(response: ServerResponse): void {
    const socket = this.#sockets.get(response.socket?.remotePort)
    if (socket !== undefined) resetSocket(socket)
  }

  async #pass(o: Passing, onAnswer: (status: number) => Promise<void>): Promise<void> {
    const { incoming, response, request, fault } = o
    const answer = await this.#send(incoming, request.body, response)
    if (!request.isWatch) {
      const body = await buffer(answer)
      await onAnswer(answer.statusCode ?? 0)
      if (fault?.type === 'lose') {
        this.#reset(response)
        return
      }
      response.writeHead(answer.statusCode ?? 0, passedHeaders(answer))
      response.end(body)
      return
    }
    response.writeHead(answer.statusCode ?? 0, passedHeaders(answer))
    response.flushHeaders()
    this.#past.track(request, response)
    this.#watches.set(response, answer)
    response.once('close', () => {
      this.#watches.delete(response)
      answer.destroy()
    })
    // A server that dies ends the watch as roughly for whom it is passed on to.
    answer.once('error', () => this.#reset(response))
    answer.on('data', (piece) => response.write(piece))
    answer.once('end', () => response.end())
    if (this.#isFrozen) answer.pause()
  }

  #send(
    incoming: IncomingMessage,
    body: string,
    response: ServerResponse,
  ): Promise<IncomingMessage> {
    const { host: _, connection: __, ...headers } = incoming.headers
    return new Promise((resolve, reject) => {
      const sent = sendRequest(new URL(incoming.url ?? '/', this.#target.url), {
        method: incoming.method ?? 'GET',
        agent: this.#agent,
        headers: { ...headers, 'content-length': Buffer.byteLength(body) },
      })
      sent.once('response', resolve)
      sent.on('error', reject)
      // The client has left: the server must not go on for it.
      response.once('close', () => {
        if (!response.writableFinished) sent.destroy()
      })
      sent.end(body)
    })
  }
}

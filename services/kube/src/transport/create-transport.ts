import type { IncomingMessage } from 'node:http'
import { type Clock, LineSplitter, type Logger, type Metrics } from '@tutti/chassis'
import { type KubeError, noAnswer } from '../kube-error.ts'
import { KubeEvents } from '../log-events.ts'
import type { ClusterAccess, Credentials } from './cluster-access.ts'
import { createConnections } from './connections.ts'
import { createExchange, type Exchange } from './exchange.ts'
import { parseJsonBody, readBodyText } from './read-response.ts'
import { type RepeatOptions, repeatRequest } from './repeat-request.ts'
import { type CountRequest, createRequestMetrics } from './request-metrics.ts'
import { toKubeError } from './to-kube-error.ts'
import type {
  Query,
  Transport,
  TransportRequest,
  TransportResponse,
  TransportStream,
} from './transport.ts'

const DEFAULT_TIMEOUT_MS = 30_000
/** etcd takes objects of 1.5 MiB by default; with what a watch adds, nothing comes near this. */
const LONGEST_LINE_BYTES = 16 * 1024 * 1024

export interface TransportOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Metrics to which client-go's `rest_client_*` are added; none if absent. */
  readonly metrics?: Metrics
  /** Value of the header `user-agent`, e.g. `tutti-operator/1.2.3`. */
  readonly userAgent: string
  /** Random numbers, uniform in [0, 1); Math.random if absent. */
  readonly random?: () => number
  /** Milliseconds that a request without its own limit may take; default 30000. */
  readonly timeoutMs?: number
}

/** Makes a transport; it connects when it is first used. */
export function createTransport(access: ClusterAccess, o: TransportOptions): Transport {
  return new HttpTransport(access, o)
}

class HttpTransport implements Transport {
  readonly #access: ClusterAccess
  readonly #options: TransportOptions
  readonly #count: CountRequest
  readonly #connections
  readonly #events: KubeEvents
  readonly #open = new Set<Exchange>()
  readonly #repeatOptions: RepeatOptions
  #isClosed = false

  constructor(access: ClusterAccess, o: TransportOptions) {
    this.#access = access
    this.#options = o
    this.#connections = createConnections(access)
    this.#count = o.metrics ? createRequestMetrics(o.metrics, access.server.host) : () => {}
    this.#events = new KubeEvents(o.log)
    this.#repeatOptions = {
      clock: o.clock,
      ...(o.random && { random: o.random }),
      onRefused: () => access.refresh(),
      isClosed: () => this.#isClosed,
    }
  }

  request(o: TransportRequest): Promise<TransportResponse> {
    return repeatRequest(o, () => this.#requestOnce(o), this.#repeatOptions)
  }

  stream(o: TransportRequest & { readonly idleMs: number }): Promise<TransportStream> {
    return repeatRequest(o, () => this.#streamOnce(o), this.#repeatOptions)
  }

  // oxlint-disable-next-line typescript/require-await -- all of it is over at once
  async close(): Promise<void> {
    this.#isClosed = true
    for (const exchange of this.#open) exchange.abort(closedError())
    this.#connections.close()
  }

  async #requestOnce(o: TransportRequest): Promise<TransportResponse> {
    const { exchange, response, startedMs } = await this.#head(o, false)
    try {
      const text = await readBodyText(exchange, response)
      this.#count(o.method, response.statusCode, this.#options.clock.now() - startedMs)
      const status = this.#check(o, response, text)
      this.#events.serverWarned(response.headers.warning)
      return { status, body: parseJsonBody(titleOf(o), text) }
    } finally {
      this.#leave(exchange)
    }
  }

  async #streamOnce(o: TransportRequest & { readonly idleMs: number }): Promise<TransportStream> {
    const { exchange, response, startedMs } = await this.#head(o, true)
    this.#count(o.method, response.statusCode, this.#options.clock.now() - startedMs)
    try {
      if ((response.statusCode ?? 0) >= 400) {
        this.#check(o, response, await readBodyText(exchange, response))
      }
      this.#events.serverWarned(response.headers.warning)
      let isClosed = false
      const close = (): void => {
        isClosed = true
        exchange.abort(closedError())
        this.#leave(exchange)
      }
      return { lines: this.#readLines(exchange, response, o, () => isClosed), close }
    } catch (error) {
      this.#leave(exchange)
      throw error
    }
  }

  /** Sends a request and waits for the answer's head. The limit runs on. */
  async #head(
    o: TransportRequest,
    isStream: boolean,
  ): Promise<{ exchange: Exchange; response: IncomingMessage; startedMs: number }> {
    const { clock } = this.#options
    const startedMs = clock.now()
    const title = titleOf(o)
    const credentials = await this.#credentials(title)
    if (this.#isClosed) throw closedError()
    const body = o.body === undefined ? undefined : toBody(o.body)
    const request = this.#connections.open(
      {
        method: o.method,
        path: o.path + toQuery(o.query),
        headers: this.#headers(o, body),
        isStream,
      },
      credentials,
    )
    const exchange = createExchange(request, { title, clock, signal: o.signal })
    this.#open.add(exchange)
    const timeoutMs = o.timeoutMs ?? this.#options.timeoutMs ?? DEFAULT_TIMEOUT_MS
    exchange.limit(timeoutMs, () =>
      noAnswer('Timeout', `${title}: no answer within ${timeoutMs} ms`),
    )
    try {
      return { exchange, response: await exchange.send(body), startedMs }
    } catch (error) {
      this.#leave(exchange)
      this.#count(o.method, undefined, clock.now() - startedMs)
      throw error
    }
  }

  async *#readLines(
    exchange: Exchange,
    response: IncomingMessage,
    o: TransportRequest & { readonly idleMs: number },
    isClosed: () => boolean,
  ): AsyncGenerator<string> {
    const lines: string[] = []
    const splitter = new LineSplitter(LONGEST_LINE_BYTES, {
      onLine: (line) => line !== '' && lines.push(line),
      onTooLong: () => {
        const problem = `a line of the stream has more than ${LONGEST_LINE_BYTES} bytes`
        throw noAnswer('BadResponse', problem)
      },
    })
    const late = (): Error => noAnswer('Timeout', `${titleOf(o)}: nothing came for ${o.idleMs} ms`)
    exchange.limit(o.idleMs, late)
    try {
      for await (const piece of response) {
        exchange.limit(o.idleMs, late)
        if (Buffer.isBuffer(piece)) splitter.push(piece)
        yield* lines.splice(0)
        if (isClosed()) return
      }
      splitter.flush()
      yield* lines
    } catch (error) {
      if (!isClosed()) throw exchange.toError(error)
    } finally {
      exchange.abort(closedError())
      this.#leave(exchange)
    }
  }

  async #credentials(title: string): Promise<Credentials> {
    try {
      return await this.#access.credentials()
    } catch (error) {
      const message = `${title}: no credentials: ${error instanceof Error ? error.message : String(error)}`
      throw noAnswer('NoCredentials', message, error)
    }
  }

  #headers(o: TransportRequest, body: string | undefined): Record<string, string | number> {
    const sent = { accept: o.accept ?? 'application/json', 'user-agent': this.#options.userAgent }
    if (body === undefined) return sent
    const length = Buffer.byteLength(body)
    return {
      ...sent,
      'content-type': o.contentType ?? 'application/json',
      'content-length': length,
    }
  }

  #check(o: TransportRequest, response: IncomingMessage, text: string): number {
    const status = response.statusCode ?? 0
    if (status >= 200 && status < 300) return status
    throw toKubeError({
      title: titleOf(o),
      status,
      retryAfter: response.headers['retry-after'],
      text,
    })
  }

  #leave(exchange: Exchange): void {
    exchange.finish()
    this.#open.delete(exchange)
  }
}

function titleOf(o: TransportRequest): string {
  return `${o.method} ${o.path}`
}

function toQuery(query: Query | undefined): string {
  const pairs = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) pairs.set(name, String(value))
  }
  return pairs.size === 0 ? '' : `?${pairs.toString()}`
}

function closedError(): KubeError {
  return noAnswer('Closed', 'the transport was closed')
}

/** Writes JSON as Go does, so that text that the server keeps as it came is the same after another client's patch. */
function toBody(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type Clock,
  createProbeServer,
  type Health,
  type Logger,
  PROBE_CONNECTIONS,
  silentLogger,
  systemClock,
} from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Json } from '@tutti/model-config'
import { keepSecure, listenOn, readSecureOptions, type TlsFiles } from '@tutti/serving'
import { OPEN_METRICS_TYPE, prefersOpenMetrics, toOpenMetrics } from '@tutti/telemetry'
import { SharedText } from './shared-text.ts'

/** The source of the metrics that the endpoint serves; `ServerMetrics` is one. */
export interface MetricsSource {
  readonly contentType: string
  /** Renders Prometheus' text. @param o.hasExemplars - true to end lines with exemplars, as in OpenMetrics. */
  render(o?: { readonly hasExemplars?: boolean }): Promise<string>
}

export interface MetricsServerOptions {
  readonly address: string
  /** 0 for any free port. Triton's default is 8002. */
  readonly port: number
  /** Absent: HTTP without TLS. */
  readonly tls?: TlsFiles | undefined
  readonly metrics: MetricsSource
  /** Health of the process, for `/livez` and `/readyz`; absent: these paths answer with the metrics, as all others. */
  readonly health?: HealthReading
  /** Answers in JSON to further paths. */
  readonly answers?: JsonAnswers
  readonly clock?: Clock
  readonly log?: Logger
}

/** A function that makes a JSON answer from the query of a request. */
export type JsonAnswer = (query: URLSearchParams) => Json | Promise<Json>

/** Answers by path, e.g. `/tutti/v1/served`. */
export type JsonAnswers = ReadonlyMap<string, JsonAnswer>

/** The part of a process's health that the probes read. */
export type HealthReading = Pick<Health, 'isLive' | 'isReady' | 'reasons'>

export interface MetricsServer {
  readonly port: number
  close(): Promise<void>
}

const JSON_TYPE = 'application/json'
const LISTENER_FAILED = 'listener failed'

/**
 * Starts the server for metrics, probes and `answers`, which also serves while the process drains. GET on any other path
 * answers with the metrics, as Triton 2.51 does (triton-semantics 9.19): as Prometheus' text, or as OpenMetrics if the client
 * asks for it. Other methods get 405. With `health`, `/livez` and `/readyz` answer 200 `ok`, or 503 with one line for each
 * cause.
 *
 * @throws ServeError SETTING_INVALID if the address cannot be listened on, FLAG_INVALID for files of TLS that do not fit.
 */
export async function startMetricsServer(o: MetricsServerOptions): Promise<MetricsServer> {
  const { clock = systemClock } = o
  const secure = readSecureOptions(o.tls, clock)
  const { metrics } = o
  const plain = new SharedText(() => metrics.render(), clock)
  const open = new SharedText(
    async () => toOpenMetrics(await metrics.render({ hasExemplars: true })),
    clock,
  )
  const texts = { plain, open }
  const server = createProbeServer(
    (request, response) => void answer({ ...o, texts }, request, response),
    { tls: secure?.options },
  )
  const log = o.log ?? silentLogger
  const onError = (error: Error): void => log.error(LISTENER_FAILED, { error })
  const port = await listenOn(server, { ...o, onError })
  const endTls = keepSecure(server, { secure, maxConnections: PROBE_CONNECTIONS, clock, log })
  return {
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        endTls()
        server.closeAllConnections()
      }),
  }
}

/** The answers of the server, with the two forms of the metrics. */
interface Answers extends MetricsServerOptions {
  readonly texts: { readonly plain: SharedText; readonly open: SharedText }
}

async function answer(
  o: Answers,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [path = '', query = ''] = (request.url ?? '').split('?', 2)
  const isProbe = o.health !== undefined && (path === '/livez' || path === '/readyz')
  const json = o.answers?.get(path)
  try {
    if (request.method !== 'GET') send(response, 405, JSON_TYPE, '{"error":"Method Not Allowed"}')
    else if (isProbe) sendHealth(response, o.health, path)
    else if (json !== undefined) {
      const body = await json(new URLSearchParams(query))
      send(response, 200, JSON_TYPE, JSON.stringify(body))
    } else await sendMetrics(response, o, request.headers.accept)
  } catch (error) {
    const { message } = ServeError.from(error)
    send(response, 500, JSON_TYPE, JSON.stringify({ error: message }))
  }
}

async function sendMetrics(
  response: ServerResponse,
  { texts, metrics }: Answers,
  accept: string | undefined,
): Promise<void> {
  if (!prefersOpenMetrics(accept)) {
    return send(response, 200, metrics.contentType, await texts.plain.get())
  }
  send(response, 200, OPEN_METRICS_TYPE, await texts.open.get())
}

function sendHealth(response: ServerResponse, health: HealthReading, path: string): void {
  const isWell = path === '/livez' ? health.isLive : health.isReady
  const text = isWell ? 'ok' : health.reasons.join('\n')
  send(response, isWell ? 200 : 503, 'text/plain; charset=utf-8', `${text}\n`)
}

function send(
  response: ServerResponse,
  status: number,
  contentType: string,
  body: string | Buffer,
): void {
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    ...(status === 405 && { allow: 'GET' }),
  })
  response.end(body)
}

import { flagRefusal } from '@tutti/chassis'
import { callHttp, type HttpConnection, reasonOfStatus } from '@tutti/command-line/client'
import { ServeError } from '@tutti/errors'
import { parseReading, type TopReading } from './reading.ts'

/** Bytes of the metrics of tens of thousands of models. */
const MOST_BYTES = 128 * 1024 * 1024

/** Parses the address of a server's metrics; the path is /metrics if the address has none. @throws ServeError FLAG_INVALID */
export function parseMetricsUrl(text: string): URL {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '') {
    throw flagRefusal('--url', `got '${text}', want http://HOST:PORT or https://, of the metrics`)
  }
  return url.pathname === '/' ? new URL('/metrics', url) : url
}

/** The address of a server's metrics, and the options of the connection. */
export interface ScrapedServer extends Pick<HttpConnection, 'tls' | 'headers' | 'timeoutMs'> {
  readonly url: URL
}

/**
 * Requests the metrics of a server, and parses them.
 *
 * @throws ServeError SERVER_NOT_READY or DEADLINE_EXCEEDED without an answer, and the reason of a status other than 200.
 */
export async function readMetrics(
  { url, ...connection }: ScrapedServer,
  signal?: AbortSignal,
): Promise<TopReading> {
  const { status, body } = await callHttp(connection, {
    url,
    method: 'GET',
    mostBytes: MOST_BYTES,
    ...(signal && { signal }),
  })
  if (status !== 200) {
    const problem = `${url.href} gives no metrics: HTTP ${status}`
    throw new ServeError(reasonOfStatus(status) ?? 'INVALID_REQUEST', problem)
  }
  return parseReading(body.toString('utf8'), performance.now())
}

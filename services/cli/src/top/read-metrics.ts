import { flagRefusal } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { parseReading, type Reading } from './reading.ts'

const TIMEOUT_MS = 5000
/** Of tens of thousands of models. */
const MOST_BYTES = 128 * 1024 * 1024

/** The address of a server's metrics. @throws ServeError FLAG_INVALID */
export function parseMetricsUrl(text: string): URL {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '') {
    throw flagRefusal('--url', `got '${text}', want http://HOST:PORT or https://, of the metrics`)
  }
  return url.pathname === '/' ? new URL('/metrics', url) : url
}

/** Asks a server for its metrics. @throws ServeError SERVER_NOT_READY if it does not give them. */
export async function readMetrics(url: URL, signal?: AbortSignal): Promise<Reading> {
  try {
    const timeout = AbortSignal.timeout(TIMEOUT_MS)
    const response = await fetch(url, {
      signal: signal ? AbortSignal.any([timeout, signal]) : timeout,
    })
    if (!response.ok) throw new Error(`HTTP ${response.status}`)
    return parseReading(await readText(response), performance.now())
  } catch (error) {
    throw new ServeError('SERVER_NOT_READY', `${url.host}: ${reasonOf(error)}`, { cause: error })
  }
}

async function readText({ body }: Response): Promise<string> {
  const decoder = new TextDecoder()
  const parts: string[] = []
  let bytes = 0
  for await (const part of body ?? []) {
    bytes += part.byteLength
    if (bytes > MOST_BYTES) throw new Error(`more than ${MOST_BYTES} bytes`)
    parts.push(decoder.decode(part, { stream: true }))
  }
  return parts.join('')
}

/** `fetch` has what happened in the cause. */
function reasonOf(error: unknown): string {
  const { message, cause } = ServeError.from(error)
  const inner = cause instanceof Error ? cause.cause : undefined
  return inner instanceof Error ? inner.message || inner.name : message
}

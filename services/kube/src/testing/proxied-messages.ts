import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Fault, type ProxiedRequest, statusOf } from './fault-rules.ts'

/** Answers in place of the server. */
export function answerFault(
  fault: Extract<Fault, { type: 'answer' | 'watch-error' }>,
  response: ServerResponse,
): void {
  const status = statusOf(fault)
  response.setHeader('content-type', 'application/json')
  if (fault.type === 'watch-error') {
    response.end(`${JSON.stringify({ type: 'ERROR', object: status })}\n`)
    return
  }
  if (fault.retryAfter !== undefined) response.setHeader('retry-after', fault.retryAfter)
  response.statusCode = fault.status
  response.end(JSON.stringify(status))
}

/** Reads a request to its end. */
export async function readRequest(incoming: IncomingMessage): Promise<ProxiedRequest> {
  const method = incoming.method ?? 'GET'
  const url = new URL(incoming.url ?? '/', 'https://proxy')
  const body = (await readAll(incoming)).toString('utf8')
  const isWatch = ['1', 'true'].includes(url.searchParams.get('watch') ?? '')
  const isWrite = method !== 'GET' && method !== 'HEAD' && !url.searchParams.has('dryRun')
  return { method, path: url.pathname, query: url.searchParams, isWatch, isWrite, body }
}

export async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of stream) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

/** The headers of an answer that are passed on. */
export function passedHeaders(answer: IncomingMessage): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {}
  for (const [name, value] of Object.entries(answer.headers)) {
    // The length and the cutting into chunks are the proxy's own matter.
    const isOwn = ['connection', 'content-length', 'transfer-encoding'].includes(name)
    if (value !== undefined && !isOwn) headers[name] = value
  }
  return headers
}

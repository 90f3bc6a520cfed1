import { gunzipSync, inflateSync } from 'node:zlib'
import { type RestAnswer, restCall } from '../rest-call.ts'
import type { Answer, RestCall } from './case.ts'

const PATIENCE_MS = 20_000
const JSON_LENGTH = 'inference-header-content-length'
const COMPARED_HEADERS = ['content-type', 'content-encoding', JSON_LENGTH] as const

/** Makes one HTTP call. The answer has status, some headers, and the body: as JSON where it is, with what follows it as base64. */
export async function callRest(port: number, call: RestCall): Promise<Answer> {
  const body = call.base64 === undefined ? call.body : Buffer.from(call.base64, 'base64')
  try {
    const answer = await restCall(port, call.method, call.path, {
      ...(body !== undefined && { body }),
      headers: call.headers ?? {},
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    return toAnswer(answer)
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'AbortError'
    return { status: isLate ? 'no answer' : 'connection ended' }
  }
}

function toAnswer({ status, headers, body }: RestAnswer): Answer {
  const compared = Object.fromEntries(
    COMPARED_HEADERS.flatMap((name) =>
      headers[name] === undefined ? [] : [[name, headers[name]]],
    ),
  )
  return {
    status,
    headers: compared,
    ...bodyOf(decompress(body, headers['content-encoding']), headers[JSON_LENGTH]),
  }
}

function decompress(body: Buffer, encoding: string | undefined): Buffer {
  if (encoding === 'gzip') return gunzipSync(body)
  return encoding === 'deflate' ? inflateSync(body) : body
}

function bodyOf(body: Buffer, jsonLength: string | string[] | undefined): Answer {
  if (body.byteLength === 0) return {}
  const length = jsonLength === undefined ? body.byteLength : Number(jsonLength)
  const rest = body.subarray(length)
  const text = body.subarray(0, length).toString()
  const binary = rest.byteLength === 0 ? {} : { binary: rest.toString('base64') }
  try {
    return { json: parseExactly(text), ...binary }
  } catch {
    return { text, ...binary }
  }
}

/** JSON whose integers beyond 2^53 become strings, so that none is rounded. */
export function parseExactly(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown, context?: { readonly source?: string }) => {
    if (typeof value !== 'number' || Number.isSafeInteger(value)) return value
    const source = context?.source ?? ''
    return /^-?\d+$/.test(source) ? `integer ${source}` : value
  })
}

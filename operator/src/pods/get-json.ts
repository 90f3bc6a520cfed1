import { type Agent, get, type IncomingMessage } from 'node:http'
import { type Reason, ServeError } from '@tutti/errors'

/** Where JSON comes from. */
export interface JsonPlace {
  /** The pod's name, for errors. */
  readonly pod: string
  readonly ip: string
  readonly port: number
  readonly path: string
}

export interface GetJsonOptions extends JsonPlace {
  readonly agent: Agent
  /** Largest answer that is read. */
  readonly maxBytes: number
  readonly signal: AbortSignal
}

/**
 * Asks a process for JSON.
 *
 * @throws ServeError POD_UNREACHABLE, MESSAGE_TOO_LARGE or MALFORMED_MESSAGE that names the pod and the path; the signal's reason
 * if it aborts.
 */
export async function getJson(o: GetJsonOptions): Promise<unknown> {
  o.signal.throwIfAborted()
  try {
    return parse(o, await readBody(o, await send(o)))
  } catch (error) {
    if (o.signal.aborted) throw o.signal.reason
    if (error instanceof ServeError) throw error
    throw failureAt(o, 'POD_UNREACHABLE', error instanceof Error ? error.message : 'no connection')
  }
}

/** An error that says where it happened. */
export function failureAt(
  { pod, ip, port, path }: JsonPlace,
  reason: Reason,
  problem: string,
  cause?: unknown,
): ServeError {
  return new ServeError(reason, `pod "${pod}", ${ip}:${port}${path}: ${problem}`, { cause })
}

function send({ agent, ip: host, port, path, signal }: GetJsonOptions): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  get({ agent, host, port, path, signal }, resolve).once('error', reject)
  return promise
}

async function readBody(o: GetJsonOptions, response: IncomingMessage): Promise<string> {
  if (response.statusCode !== 200) {
    response.destroy()
    throw failureAt(o, 'POD_UNREACHABLE', `HTTP ${response.statusCode}, want 200`)
  }
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of response) {
    if (!Buffer.isBuffer(part)) continue
    bytes += part.length
    // Leaving the loop destroys the response and its connection.
    if (bytes > o.maxBytes) {
      throw failureAt(o, 'MESSAGE_TOO_LARGE', `the answer is above ${o.maxBytes} bytes`)
    }
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

/** May be half of a surrogate pair: the API server would store another character, and a status never be as it is wanted. */
const HALF_CHARACTER = /\\u[dD][89a-fA-F]/

/** For `JSON.parse`, which gives a property's name no second look: objects are made anew where one is not whole. */
function toWellFormed(_key: string, value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed()
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  if (Object.keys(value).every((name) => name.isWellFormed())) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [name.toWellFormed(), field]),
  )
}

function parse(o: GetJsonOptions, text: string): unknown {
  try {
    return HALF_CHARACTER.test(text) ? JSON.parse(text, toWellFormed) : JSON.parse(text)
  } catch (cause) {
    throw failureAt(o, 'MALFORMED_MESSAGE', 'the answer is no JSON', cause)
  }
}

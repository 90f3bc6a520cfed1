import { type Agent, get, type IncomingMessage } from 'node:http'
import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'

export interface GetJsonOptions {
  readonly agent: Agent
  readonly clock: Clock
  /** The pod's name, for errors. */
  readonly pod: string
  readonly ip: string
  readonly port: number
  readonly path: string
  /** For the whole answer. */
  readonly timeoutMs: number
  /** Largest answer that is read. */
  readonly maxBytes: number
  readonly signal: AbortSignal
}

/**
 * Asks a process for JSON.
 *
 * @throws ServeError POD_UNREACHABLE, DEADLINE_EXCEEDED, MESSAGE_TOO_LARGE or MALFORMED_MESSAGE that names the pod and the path;
 * the signal's reason if it aborts.
 */
export async function getJson(o: GetJsonOptions): Promise<unknown> {
  o.signal.throwIfAborted()
  const limit = new AbortController()
  const stopTimer = o.clock.setTimer(o.timeoutMs, () =>
    limit.abort(failure(o, 'DEADLINE_EXCEEDED', `no answer within ${o.timeoutMs} ms`)),
  )
  const onAbort = (): void => limit.abort(o.signal.reason)
  o.signal.addEventListener('abort', onAbort, { once: true })
  try {
    return parse(o, await readBody(o, await open(o, limit.signal)))
  } catch (error) {
    if (limit.signal.aborted) throw limit.signal.reason
    if (error instanceof ServeError) throw error
    throw failure(o, 'POD_UNREACHABLE', error instanceof Error ? error.message : 'no connection')
  } finally {
    stopTimer()
    o.signal.removeEventListener('abort', onAbort)
  }
}

/** A kept connection may be closed by the server just when it is used: nobody has seen the question, so it is put again. */
async function open(o: GetJsonOptions, signal: AbortSignal): Promise<IncomingMessage> {
  for (;;) {
    const request = send(o, signal)
    try {
      return await request.response
    } catch (error) {
      if (!request.isReused() || signal.aborted) throw error
    }
  }
}

function send(
  { agent, ip: host, port, path }: GetJsonOptions,
  signal: AbortSignal,
): { readonly response: Promise<IncomingMessage>; isReused(): boolean } {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const request = get({ agent, host, port, path, signal }, resolve)
  request.once('error', reject)
  return { response: promise, isReused: () => request.reusedSocket }
}

async function readBody(o: GetJsonOptions, response: IncomingMessage): Promise<string> {
  if (response.statusCode !== 200) {
    response.destroy()
    throw failure(o, 'POD_UNREACHABLE', `HTTP ${response.statusCode}, want 200`)
  }
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of response) {
    if (!Buffer.isBuffer(part)) continue
    bytes += part.length
    // Leaving the loop destroys the response and its connection.
    if (bytes > o.maxBytes) {
      throw failure(o, 'MESSAGE_TOO_LARGE', `the answer is above ${o.maxBytes} bytes`)
    }
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

/** May be half of a surrogate pair: the API server would store another character, and a status never be as it is wanted. */
const HALF_CHARACTER = /\\u[dD][89a-fA-F]/

function toWellFormed(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? value.toWellFormed() : value
}

function parse(o: GetJsonOptions, text: string): unknown {
  try {
    return HALF_CHARACTER.test(text) ? JSON.parse(text, toWellFormed) : JSON.parse(text)
  } catch (cause) {
    throw failure(o, 'MALFORMED_MESSAGE', 'the answer is no JSON', cause)
  }
}

type Failure = 'POD_UNREACHABLE' | 'DEADLINE_EXCEEDED' | 'MESSAGE_TOO_LARGE' | 'MALFORMED_MESSAGE'

function failure(o: GetJsonOptions, reason: Failure, problem: string, cause?: unknown): ServeError {
  return new ServeError(reason, `pod "${o.pod}", ${o.ip}:${o.port}${o.path}: ${problem}`, { cause })
}

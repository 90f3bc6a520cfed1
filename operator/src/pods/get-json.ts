import { get, type IncomingMessage } from 'node:http'
import { hostPort } from '@tutti/chassis'
import { type Reason, ServeError } from '@tutti/errors'
import { parseBoundedJson } from '@tutti/formats'

/** The address of a JSON document in a pod. */
export interface JsonPlace {
  /** Name of the pod, for errors. */
  readonly pod: string
  readonly ip: string
  readonly port: number
  readonly path: string
}

/** A shared count of the bytes of all answers that are being read, and its limit. Each answer's first 64 KiB are not counted. */
export interface AnswerBytes {
  held: number
  readonly most: number
}

/** Bytes of each answer that are not counted: all small answers are read, whatever others send. */
const SMALL_BYTES = 64 * 1024

export interface GetJsonOptions extends JsonPlace {
  /** Shared count, in which this answer counts while it is read. */
  readonly answers: AnswerBytes

  /** Most bytes of the answer. */
  readonly maxBytes: number
  /** Most JSON values in the answer, as parseBoundedJson counts. */
  readonly maxValues: number
  readonly signal: AbortSignal
}

/**
 * Sends a GET request to a pod and parses the JSON of the answer.
 *
 * @throws ServeError that names the pod and the path: POD_UNREACHABLE, also for another HTTP status than 200; MESSAGE_TOO_LARGE;
 * MALFORMED_MESSAGE; OVERLOADED if the shared count of bytes is full. It throws the signal's reason if the signal aborts.
 */
export async function getPodJson(o: GetJsonOptions): Promise<unknown> {
  o.signal.throwIfAborted()
  try {
    return parse(o, await readBody(o, await send(o)))
  } catch (error) {
    if (o.signal.aborted) throw o.signal.reason
    if (error instanceof ServeError) throw error
    throw failureAt(o, 'POD_UNREACHABLE', error instanceof Error ? error.message : 'no connection')
  }
}

/** Makes an error whose message names the pod, its address and the path. */
export function failureAt(
  { pod, ip, port, path }: JsonPlace,
  reason: Reason,
  problem: string,
  cause?: unknown,
): ServeError {
  return new ServeError(reason, `pod "${pod}", ${hostPort(ip, port)}${path}: ${problem}`, { cause })
}

function send({ ip: host, port, path, signal }: GetJsonOptions): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  // A connection of its own: Node's servers close idle ones before most pods are asked again.
  get({ agent: false, host, port, path, signal }, resolve).once('error', reject)
  return promise
}

async function readBody(o: GetJsonOptions, response: IncomingMessage): Promise<Buffer> {
  if (response.statusCode !== 200) {
    response.destroy()
    throw failureAt(o, 'POD_UNREACHABLE', `HTTP ${response.statusCode}, want 200`)
  }
  const { answers } = o
  const parts: Buffer[] = []
  let bytes = 0
  let counted = 0
  try {
    for await (const part of response) {
      if (!Buffer.isBuffer(part)) continue
      bytes += part.length
      // Leaving the loop destroys the response and its connection.
      if (bytes > o.maxBytes) {
        throw failureAt(o, 'MESSAGE_TOO_LARGE', `the answer is above ${o.maxBytes} bytes`)
      }
      answers.held -= counted
      counted = Math.max(0, bytes - SMALL_BYTES)
      answers.held += counted
      if (counted > 0 && answers.held > answers.most) {
        throw failureAt(o, 'OVERLOADED', 'the answer is long, and so are those of other pods now')
      }
      parts.push(part)
    }
    return Buffer.concat(parts)
  } finally {
    answers.held -= counted
  }
}

function parse(o: GetJsonOptions, bytes: Buffer): unknown {
  try {
    return parseBoundedJson(bytes, o.maxValues)
  } catch (cause) {
    const { reason, message } = ServeError.from(cause)
    throw failureAt(o, reason, `the answer is ${message}`, cause)
  }
}

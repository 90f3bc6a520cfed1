import { type Agent, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { ServeError } from '@tutti/errors'
import { lateAnswer, type ModelClientOptions } from './model-client.ts'

/** The options of calls to one server over HTTP. */
export interface HttpConnection extends Omit<ModelClientOptions, 'url' | 'lookUpMs'> {
  /** Agent that keeps connections; each call has its own connection if absent. */
  readonly agent?: Agent
}

export interface HttpCall {
  readonly url: URL
  readonly method: 'GET' | 'POST'
  readonly parts?: readonly Uint8Array[]
  readonly headers?: Readonly<Record<string, string>>
  /** Signal that aborts the call. */
  readonly signal?: AbortSignal
  /** Most bytes of the answer's body. */
  readonly mostBytes?: number
}

export interface HttpAnswer {
  readonly status: number
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

/**
 * Calls a server once.
 *
 * @returns the answer, with any status.
 * @throws ServeError SERVER_NOT_READY or DEADLINE_EXCEEDED without an answer.
 */
export function callHttp(o: HttpConnection, call: HttpCall): Promise<HttpAnswer> {
  const { url, method, parts = [], headers, signal: end, mostBytes = Infinity } = call
  const { tls, timeoutMs, agent = false } = o
  const timeout = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)
  const signal = timeout && end ? AbortSignal.any([timeout, end]) : (timeout ?? end)
  const send = url.protocol === 'https:' ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    const sent = send(url, {
      ...tls,
      agent,
      method,
      headers: {
        ...o.headers,
        ...headers,
        'content-length': parts.reduce((sum, part) => sum + part.byteLength, 0),
      },
      ...(signal && { signal }),
    })
    const fail = (error: unknown) => {
      const isLate = timeout?.aborted === true && timeoutMs !== undefined
      reject(isLate ? lateAnswer(url.host, timeoutMs, error) : noAnswer(url, error))
    }
    sent.on('error', fail)
    sent.on('response', (response) => {
      const pieces: Buffer[] = []
      let bytes = 0
      response.on('data', (piece: Buffer) => {
        bytes += piece.byteLength
        if (bytes > mostBytes) response.destroy(new Error(`more than ${mostBytes} bytes`))
        else pieces.push(piece)
      })
      response.on('error', fail)
      response.on('end', () => {
        const { statusCode: status = 0 } = response
        resolve({ status, body: Buffer.concat(pieces), headers: response.headers })
      })
    })
    for (const part of parts) sent.write(part)
    sent.end()
  })
}

function noAnswer(url: URL, error: unknown): ServeError {
  const { message } = ServeError.from(error)
  return new ServeError('SERVER_NOT_READY', `${url.host}: ${message}`, { cause: error })
}

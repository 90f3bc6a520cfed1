import { type Agent, type IncomingHttpHeaders, request as requestPlain } from 'node:http'
import { request as requestSecure } from 'node:https'
import { buffer } from 'node:stream/consumers'

/** A whole HTTP answer. */
export interface RestAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** The body as JSON. @throws SyntaxError */
  json(): unknown
}

export interface RestCallOptions {
  /** Default: 127.0.0.1. */
  readonly address?: string | undefined
  /** The authority of the server, PEM: with TLS then, under the name of the header `host`. */
  readonly ca?: Buffer | undefined
  /** Keeps connections; one for each request without it. */
  readonly agent?: Agent
  readonly body?: Uint8Array | string
  readonly headers?: Readonly<Record<string, string>>
  /** Destroys the connection. */
  readonly signal?: AbortSignal
  /** Asks the server to say `100 Continue` before the body is sent, and is told when it did. */
  readonly onContinue?: () => void
}

/**
 * One HTTP request, on a connection of its own unless there is an agent, so that nothing that a pool does shows in a test.
 *
 * @throws Error of the connection, if it ends before the answer is whole.
 */
export function restCall(
  port: number,
  method: string,
  path: string,
  o: RestCallOptions = {},
): Promise<RestAnswer> {
  return new Promise((resolve, reject) => {
    const body = Buffer.from(o.body ?? '')
    const { address = '127.0.0.1', agent = false, ca } = o
    const request = ca === undefined ? requestPlain : requestSecure
    const outgoing = request({
      host: address,
      port,
      method,
      path,
      agent,
      ...(ca !== undefined && { ca, servername: o.headers?.['host'] }),
      headers: {
        'content-length': String(body.byteLength),
        ...(o.onContinue !== undefined && { expect: '100-continue' }),
        ...o.headers,
      },
      ...(o.signal !== undefined && { signal: o.signal }),
    })
    outgoing.once('error', reject)
    outgoing.once('response', (incoming) => {
      const { statusCode: status = 0, headers } = incoming
      const answer = async (): Promise<RestAnswer> => {
        const whole = await buffer(incoming)
        return { status, headers, body: whole, json: () => JSON.parse(whole.toString()) }
      }
      answer().then(resolve, reject)
    })
    if (o.onContinue === undefined) outgoing.end(body)
    else {
      const { onContinue } = o
      outgoing.once('continue', () => {
        onContinue()
        outgoing.end(body)
      })
      outgoing.flushHeaders()
    }
  })
}

import { type IncomingHttpHeaders, request } from 'node:http'

/** A whole HTTP answer. */
export interface RestAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** The body as JSON. @throws SyntaxError */
  json(): unknown
}

export interface RestCallOptions {
  readonly body?: Uint8Array | string
  readonly headers?: Readonly<Record<string, string>>
  /** Destroys the connection. */
  readonly signal?: AbortSignal
  /** Asks the server to say `100 Continue` before the body is sent, and is told when it did. */
  readonly onContinue?: () => void
}

/**
 * One HTTP request on a connection of its own, so that nothing that a pool does shows in a test.
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
    const outgoing = request({
      host: '127.0.0.1',
      port,
      method,
      path,
      agent: false,
      headers: {
        'content-length': String(body.byteLength),
        ...(o.onContinue !== undefined && { expect: '100-continue' }),
        ...o.headers,
      },
      ...(o.signal !== undefined && { signal: o.signal }),
    })
    outgoing.once('error', reject)
    outgoing.once('response', (incoming) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.once('error', reject)
      incoming.once('end', () => {
        const whole = Buffer.concat(chunks)
        const { statusCode: status = 0, headers } = incoming
        resolve({ status, headers, body: whole, json: () => JSON.parse(whole.toString()) })
      })
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

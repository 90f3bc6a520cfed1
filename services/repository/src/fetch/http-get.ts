import {
  type Agent,
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as requestHttp,
} from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { getCACertificates } from 'node:tls'
import { ServeError } from '@tutti/errors'
import { TransientFailure } from './attempts.ts'
import type { FetchContext } from './fetch-options.ts'
import { showUri } from './source-uri.ts'

/** The head of an answer, and its bytes as they come. Whoever has it reads or destroys the body. */
export interface HttpAnswer {
  readonly url: URL
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: IncomingMessage
}

export type HttpHeaders = Readonly<Record<string, string>>

/** Connections of one fetch at the same time. */
const MAX_SOCKETS = 8

/** GET requests of one fetch, over connections that are kept. It follows nothing and decodes nothing. */
export class HttpClient {
  readonly #o: Pick<FetchContext, 'bounds' | 'credentials' | 'signal'>
  readonly #plain: Agent
  readonly #secure: HttpsAgent

  constructor(o: Pick<FetchContext, 'bounds' | 'credentials' | 'signal'>) {
    const { ca } = o.credentials
    const agent = { keepAlive: true, maxSockets: MAX_SOCKETS }
    this.#o = o
    this.#plain = new HttpAgent(agent)
    this.#secure = new HttpsAgent(
      ca === undefined ? agent : { ...agent, ca: [...getCACertificates(), ca] },
    )
  }

  /** @throws TransientFailure, or ServeError ARTIFACT_UNTRUSTED; the signal's reason if it aborts. */
  async get(url: URL, headers: HttpHeaders): Promise<HttpAnswer> {
    try {
      const body = await this.#send(url, headers)
      return { url, status: body.statusCode ?? 0, headers: body.headers, body }
    } catch (error) {
      throw this.toFailure(url, error)
    }
  }

  /** What an error of a connection or of a body amounts to. */
  toFailure(url: URL, error: unknown): unknown {
    const { signal } = this.#o
    if (signal.aborted) return signal.reason
    if (!(error instanceof Error) || error instanceof ServeError) return error
    const text = `'${showUri(url)}' cannot be read: ${describe(error)}`
    if (isTlsFault(error)) return new ServeError('ARTIFACT_UNTRUSTED', text, { cause: error })
    return new TransientFailure(new ServeError('ARTIFACT_UNAVAILABLE', text, { cause: error }))
  }

  close(): void {
    this.#plain.destroy()
    this.#secure.destroy()
  }

  #send(url: URL, headers: HttpHeaders): Promise<IncomingMessage> {
    const { bounds, signal } = this.#o
    const isSecure = url.protocol === 'https:'
    return new Promise((resolve, reject) => {
      const options = { headers: { ...headers, 'accept-encoding': 'identity' }, signal }
      const request: ClientRequest = isSecure
        ? requestHttps(url, { ...options, agent: this.#secure })
        : requestHttp(url, { ...options, agent: this.#plain })
      request.setTimeout(bounds.stallMs, () => {
        request.destroy(new Error(`no byte came for ${bounds.stallMs} ms`))
      })
      request.on('response', resolve)
      request.on('error', reject)
      request.end()
    })
  }
}

function describe(error: Error): string {
  // Several addresses were tried: the message of the whole is empty.
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : error
  const { message } = inner instanceof Error ? inner : error
  return message === '' ? codeOf(error) : message
}

function codeOf(error: Error): string {
  return 'code' in error ? String(error.code) : error.name
}

/** Certificates that are not trusted, and servers that speak no TLS: no attempt changes that. */
function isTlsFault(error: Error): boolean {
  return /CERT|EPROTO|ERR_SSL|ERR_TLS|SELF_SIGNED|UNABLE_TO_/.test(codeOf(error))
}

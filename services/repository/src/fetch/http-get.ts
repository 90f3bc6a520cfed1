import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { getCACertificates } from 'node:tls'
import { systemClock } from '@tutti/chassis'
import { type Reason, ServeError } from '@tutti/errors'
import type { FetchContext } from './fetch-options.ts'
import { showUri } from './source-uri.ts'

/** The head of a response, and its body as a stream. The receiver reads the body to its end or destroys it. */
export interface StreamedAnswer {
  readonly url: URL
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: IncomingMessage
}

export type HttpHeaders = Readonly<Record<string, string>>

/** Bytes each second. A server that sends one byte at a time would hold a start for ever. */
const SLOWEST = 1024
/** Characters. Above a page of keys of 1024 bytes each, percent-encoded. */
const MAX_TEXT = 16 * 2 ** 20

/** Sends the requests of one fetch, by Node's own agents, which know the proxies of the process. It follows no redirect and decodes nothing: digests are of the bytes as sent. */
export class HttpClient {
  readonly #context: Pick<FetchContext, 'bounds' | 'signal'>
  /** Certificates to trust; absent: those of Node.js. */
  readonly #authorities: readonly string[] | undefined

  constructor(o: Pick<FetchContext, 'bounds' | 'credentials' | 'signal'>) {
    const { ca } = o.credentials
    this.#context = o
    if (ca === undefined) return
    this.#authorities = [...getCACertificates(), ca]
  }

  /**
   * Sends a GET request, and resolves with the head of the response.
   *
   * @throws ServeError ARTIFACT_UNAVAILABLE, ARTIFACT_UNTRUSTED; the signal's reason if it aborts.
   */
  async get(url: URL, headers: HttpHeaders): Promise<StreamedAnswer> {
    return await this.send(url, { headers })
  }

  /** Sends a request with any method, and with a body. @throws as `get`. */
  async send(
    url: URL,
    o: {
      readonly method?: 'GET' | 'POST' | 'PUT'
      readonly headers: HttpHeaders
      readonly body?: string
    },
  ): Promise<StreamedAnswer> {
    try {
      const body = await this.#send(url, o)
      return { url, status: body.statusCode ?? 0, headers: body.headers, body }
    } catch (error) {
      throw this.toFailure(url, error)
    }
  }

  /**
   * Yields the bytes of a body as they arrive. Only the time spent waiting for the server counts, not that of a slow disk.
   *
   * @throws as `get`; ARTIFACT_UNAVAILABLE also for less than 1024 bytes each second.
   */
  async *pieces({ url, body }: StreamedAnswer): AsyncGenerator<Buffer> {
    const { stallMs } = this.#context.bounds
    const least = Math.ceil((stallMs / 1000) * SLOWEST)
    let waitedMs = 0
    let bytes = 0
    try {
      let askedMs = systemClock.now()
      for await (const piece of body as AsyncIterable<Buffer>) {
        waitedMs += systemClock.now() - askedMs
        bytes += piece.byteLength
        if (waitedMs > stallMs) {
          const problem = `${bytes} bytes came in ${Math.round(waitedMs)} ms, want at least ${least}`
          if (bytes < least) throw new Error(problem)
          waitedMs = bytes = 0
        }
        yield piece
        askedMs = systemClock.now()
      }
    } catch (error) {
      throw this.toFailure(url, error)
    } finally {
      body.destroy()
    }
  }

  /**
   * Reads a body as text.
   *
   * @param want - the wanted text in words, for messages.
   * @throws as `pieces`; ARTIFACT_UNAVAILABLE also for more than `maxLength` characters.
   */
  async text(answer: StreamedAnswer, want: string, maxLength = MAX_TEXT): Promise<string> {
    const decoder = new TextDecoder()
    let text = ''
    for await (const piece of this.pieces(answer)) {
      text += decoder.decode(piece, { stream: true })
      if (text.length > maxLength) {
        const problem = `answered more than ${maxLength} characters, want ${want}`
        throw new ServeError('ARTIFACT_UNAVAILABLE', `'${showUri(answer.url)}' ${problem}`)
      }
    }
    return text
  }

  /** Converts an error of a connection or a body to a ServeError, or to the signal's reason after an abort. */
  toFailure(url: URL, error: unknown): unknown {
    const { signal } = this.#context
    if (signal.aborted) return signal.reason
    if (!(error instanceof Error) || error instanceof ServeError) return error
    const text = `'${showUri(url)}' cannot be read: ${describe(error)}`
    const reason = isTlsFault(error) ? 'ARTIFACT_UNTRUSTED' : 'ARTIFACT_UNAVAILABLE'
    return new ServeError(reason, text, { cause: error })
  }

  #send(
    url: URL,
    { method = 'GET', headers, body }: Parameters<HttpClient['send']>[1],
  ): Promise<IncomingMessage> {
    const { bounds, signal } = this.#context
    return new Promise((resolve, reject) => {
      const options = { method, headers: { ...headers, 'accept-encoding': 'identity' }, signal }
      const ca = this.#authorities
      const request =
        url.protocol === 'https:'
          ? httpsRequest(url, { ...options, ...(ca && { ca: [...ca] }) })
          : httpRequest(url, options)
      request.setTimeout(bounds.stallMs, () => {
        request.destroy(new Error(`no byte came for ${bounds.stallMs} ms`))
      })
      // A head that comes a byte at a time never stalls.
      const dismiss = systemClock.setTimer(2 * bounds.stallMs, () => {
        request.destroy(new Error(`no head came for ${2 * bounds.stallMs} ms`))
      })
      request.on('response', (response) => {
        dismiss()
        resolve(response)
      })
      request.on('error', (error) => {
        dismiss()
        reject(error)
      })
      request.end(body)
    })
  }
}

const REASONS: Readonly<Record<number, Reason>> = {
  401: 'ARTIFACT_DENIED',
  403: 'ARTIFACT_DENIED',
  404: 'ARTIFACT_NOT_FOUND',
  410: 'ARTIFACT_NOT_FOUND',
}

/** Converts a response without the artifact to an error, and destroys its body. @param detail - e.g. S3's code. */
export function toStatusFailure({ status, url, body }: StreamedAnswer, detail = ''): ServeError {
  body.destroy()
  const text = `'${showUri(url)}' answered ${status}${detail === '' ? '' : `, ${detail}`}`
  return new ServeError(REASONS[status] ?? 'ARTIFACT_UNAVAILABLE', text)
}

function describe(error: Error): string {
  // Where several addresses failed, the message of the whole is empty.
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : error
  const { message } = inner instanceof Error ? inner : error
  return message === '' ? codeOf(error) : message
}

function codeOf(error: Error): string {
  return 'code' in error ? String(error.code) : error.name
}

/** Certificates that are not trusted, and servers without TLS: no further attempt helps. */
function isTlsFault(error: Error): boolean {
  return /CERT|EPROTO|ERR_SSL|ERR_TLS|SELF_SIGNED|UNABLE_TO_/.test(codeOf(error))
}

import { ServeError } from '@tutti/errors'
import type { InferRequestParts, InferResponseParts, ModelMetadata } from '@tutti/protocol'

/** A running server, as `tutti infer` asks it. */
export interface ModelClient {
  metadata(model: string, version: string): Promise<ModelMetadata>
  /** The responses of one request, as they come. */
  infer(request: InferRequestParts, metadata: ModelMetadata): AsyncIterable<InferResponseParts>
  /**
   * Encodes a request once, to be sent many times.
   *
   * @returns sends it, over connections that stay open, and ends with the last response, which it does not decode.
   */
  prepare(request: InferRequestParts, metadata: ModelMetadata): PreparedRequest
  /** The names of those that are ready, each once for a version. */
  models(): Promise<readonly string[]>
  close(): void
}

/** @throws ServeError as the server made it, or when the signal aborts. */
export type PreparedRequest = (signal: AbortSignal) => Promise<void>

export interface ModelClientOptions {
  /** `grpc://`, `grpcs://`, `http://` or `https://`. */
  readonly url: URL
  /** Texts in PEM. */
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string }
  readonly headers: Readonly<Record<string, string>>
  /** For requests; no limit if absent. */
  readonly timeoutMs?: number
  /** For all other calls. */
  readonly lookUpMs: number
}

/** The error for a server that did not answer within the limit of a flag. @param where - its address. */
export function lateAnswer(where: string, limitMs: number, cause: unknown): ServeError {
  const text = `${where} did not answer within ${limitMs / 1000} s; --timeout-secs sets another limit`
  return new ServeError('DEADLINE_EXCEEDED', text, { cause })
}

/** @throws ServeError FLAG_INVALID for a text that is no address of a server. */
export function parseServerUrl(text: string): URL {
  const url = URL.parse(text)
  const isKnown = /^(grpcs?|https?):$/.test(url?.protocol ?? '')
  if (url === null || !isKnown || url.hostname === '' || url.username !== '') {
    const want = 'want grpc://HOST:PORT, grpcs://, http:// or https://'
    throw new ServeError('FLAG_INVALID', `--url: got '${text}', ${want}`, {
      details: { field: 'url' },
    })
  }
  return url
}

import { ServeError } from '@tutti/errors'
import type { InferResponse, OutgoingRequest, ReceivedMetadata } from '@tutti/protocol'

/** A client of a running server, over gRPC or REST. */
export interface ModelClient {
  metadata(model: string, version: string): Promise<ReceivedMetadata>
  /** Sends a request and yields its responses as they come. */
  infer(request: OutgoingRequest, metadata: ReceivedMetadata): AsyncIterable<InferResponse>
  /**
   * Encodes a request once, to be sent many times.
   *
   * @returns a function that sends the request over connections that stay open. It resolves after the last response, and decodes
   * none.
   */
  prepare(request: OutgoingRequest, metadata: ReceivedMetadata): PreparedRequest
  /** Lists the names of the ready models, one entry for each version. */
  models(): Promise<readonly string[]>
  close(): void
}

/** Sends a prepared request. @throws ServeError of the server; ServeError also when the signal aborts. */
export type PreparedRequest = (signal: AbortSignal) => Promise<void>

export interface ModelClientOptions {
  /** URL of the server, with `grpc://`, `grpcs://`, `http://` or `https://`. */
  readonly url: URL
  /** Texts in PEM. */
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string }
  readonly headers: Readonly<Record<string, string>>
  /** Milliseconds that an inference request may take; no limit if absent. */
  readonly timeoutMs?: number
  /** Milliseconds that any other call may take. */
  readonly lookUpMs: number
}

/** Builds the error for a server that did not answer within `--timeout-secs`. @param where - the server's address. */
export function lateAnswer(where: string, limitMs: number, cause: unknown): ServeError {
  const text = `${where} did not answer within ${limitMs / 1000} s; --timeout-secs sets another limit`
  return new ServeError('DEADLINE_EXCEEDED', text, { cause })
}

/** Parses the address of a server. @throws ServeError FLAG_INVALID for a text that is not one. */
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

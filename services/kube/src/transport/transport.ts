import type { CancelSignal } from '@tutti/errors'

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export type Query = Readonly<Record<string, string | number | boolean | undefined>>

export interface TransportRequest {
  readonly method: HttpMethod
  /** Path with a leading slash, percent-encoded. */
  readonly path: string
  /** Query of the path; members that are undefined are left out. */
  readonly query?: Query
  /** Body to send, as JSON. */
  readonly body?: unknown
  /** Content type of the body; `application/json` if absent. */
  readonly contentType?: string
  /** Content type of the answer, which is JSON in any case; `application/json` if absent. */
  readonly accept?: string
  readonly signal?: CancelSignal | undefined
  /** Milliseconds of each try, until a request's whole answer or a stream's head. Default: that of the transport. */
  readonly timeoutMs?: number | undefined
  /**
   * True if the server may carry out the request twice without harm. Only such a request is sent again after 429, 503 or a lost
   * connection, three times in all. Default: true for GET.
   */
  readonly isIdempotent?: boolean
}

export interface TransportResponse {
  readonly status: number
  /** Parsed JSON, not checked. */
  readonly body: unknown
}

/** A response whose lines come over time. */
export interface TransportStream {
  /**
   * Lines without their line ends, to be read once. They end when the server ends the response. They throw a KubeError with
   * status 0 if the connection is lost or idle for too long, and the signal's reason if the signal aborts.
   */
  readonly lines: AsyncIterable<string>
  /** Closes the connection, which ends `lines`. */
  close(): void
}

/** Sends requests to one API server, over connections that are kept. */
export interface Transport {
  /** Sends a request and reads its whole answer. @throws KubeError for a status of 400 or above, and if no answer comes. */
  request(o: TransportRequest): Promise<TransportResponse>
  /**
   * Sends a request, and resolves with the head of its answer. The caller closes the stream.
   *
   * @param o.idleMs - milliseconds without a byte, after which the stream counts as dead.
   */
  stream(o: TransportRequest & { readonly idleMs: number }): Promise<TransportStream>
  /** Ends all connections. Requests and streams that are under way fail. */
  close(): Promise<void>
}

import type { CancelSignal } from '@tutti/errors'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export type Query = Readonly<Record<string, string | number | boolean | undefined>>

export interface TransportRequest {
  readonly method: Method
  /** Begins with a slash, percent-encoded. */
  readonly path: string
  /** Query of the path; members that are undefined are left out. */
  readonly query?: Query
  /** Sent as JSON. */
  readonly body?: unknown
  /** Content type of the body; `application/json` if absent. */
  readonly contentType?: string
  /** Content type of the answer, which is JSON in any case; `application/json` if absent. */
  readonly accept?: string
  readonly signal?: CancelSignal | undefined
  /** Time limit of each try: for a request until all has come, for a stream until its head has. Default: that of the transport. */
  readonly timeoutMs?: number | undefined
  /**
   * True if carrying it out twice does no harm: then, and only then, it is sent again after 429, 503 or a connection that
   * was lost, three times in all. Default: true for GET.
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
   * Lines without their ends, once through. Ends when the server ends the response; throws a KubeError with status 0 if the
   * connection is lost or idle for too long, and the signal's reason if it aborts.
   */
  readonly lines: AsyncIterable<string>
  /** Gives the connection up; `lines` ends. */
  close(): void
}

/** Sends requests to one API server, over connections that are kept. */
export interface Transport {
  /** @throws KubeError for a status of 400 or above, and if no answer comes. */
  request(o: TransportRequest): Promise<TransportResponse>
  /** @param o.idleMs - longest time without a byte before the stream counts as dead. */
  stream(o: TransportRequest & { readonly idleMs: number }): Promise<TransportStream>
  /** Ends all connections; what is under way fails. */
  close(): Promise<void>
}

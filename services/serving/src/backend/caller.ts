import type { IncomingHttpHeaders } from 'node:http'
import type { ApiGroup } from './api-groups.ts'

/** The facts about a caller that are known before anything of its call is read. */
export interface Caller {
  readonly headers: IncomingHttpHeaders
  /** Names of headers as the client wrote them, each with its value behind it; with HTTP/1 alone. */
  readonly rawHeaders?: readonly string[]
  /** The path of the gRPC method, or the URL of the HTTP request. */
  readonly path: string | undefined
  /** The path of the route, of HTTP: a client may write it in several ways. */
  readonly route?: string
  /** With which calls the server restricts this one; undefined for a method that it does not have, and for pages. */
  readonly group?: ApiGroup | undefined
  /** Its connection; undefined if that is gone. */
  readonly socket: CallerSocket | undefined
}

export interface CallerSocket {
  readonly remoteAddress?: string | undefined
}

/** Undefined if its connection is gone: the socket of an HTTP/2 session then throws. */
export function addressOf(socket: CallerSocket | undefined): string | undefined {
  try {
    return socket?.remoteAddress
  } catch {
    return undefined
  }
}

/** Whom a caller has proven to be, as far as that limits what it sees and changes of the server. */
export interface CallerIdentity {
  /** As configured; undefined for a caller without credentials. */
  readonly name: string | undefined
  readonly mayControl: boolean
  /** Whether it may call a model, by its served name; there need not be one. */
  readonly mayCall: (model: string) => boolean
}

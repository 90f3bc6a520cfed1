import type { IncomingHttpHeaders } from 'node:http'
import type { ApiGroup } from './api-groups.ts'

/** The facts about a caller that are known before anything of its call is read. */
export interface Caller {
  readonly headers: IncomingHttpHeaders
  /** Names and values of headers in turn, as the client wrote them; only with HTTP/1. */
  readonly rawHeaders?: readonly string[]
  /** The path of the gRPC method, or the URL of the HTTP request. */
  readonly path: string | undefined
  /** Path of the HTTP route, of which `path` may be any spelling. */
  readonly route?: string
  /** API group of the call, for restrictions; undefined for a method that the server does not have, and for pages. */
  readonly group?: ApiGroup | undefined
  /** Socket of the connection; undefined if the connection is gone. */
  readonly socket: CallerSocket | undefined
}

export interface CallerSocket {
  readonly remoteAddress?: string | undefined
}

/** Reads the IP address of a caller; undefined if its connection is gone, when the socket of an HTTP/2 session throws. */
export function addressOf(socket: CallerSocket | undefined): string | undefined {
  try {
    return socket?.remoteAddress
  } catch {
    return undefined
  }
}

/** The identity that a caller has proven, and its rights. */
export interface CallerIdentity {
  /** Name as configured; undefined for a caller without credentials. */
  readonly name: string | undefined
  readonly mayControl: boolean
  /** Function that tells whether the caller may call a model of this served name; the model need not exist. */
  readonly mayCall: (model: string) => boolean
}

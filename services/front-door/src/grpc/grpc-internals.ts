import type { Http2Server, Http2Session, IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Server } from '@grpc/grpc-js'
import { assert } from '@tutti/errors'

/*
 * Everything private of grpc-js 1.14.7 that we touch, for what it has no option for: windows, the bytes of half-read
 * messages, deadlines with our own clock and error. Tests of each guard against an upgrade that moves them.
 */

interface ServerInternals {
  readonly commonServerOptions: {
    settings?: Readonly<Record<string, number>>
    streamResetBurst?: number
    streamResetRate?: number
  }
  readonly http2Servers: ReadonlyMap<Http2Server, unknown>
}

/** What grpc-js does with a new stream. */
export type StreamHandler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void

function internalsOf(server: Server): ServerInternals {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- private members, checked by the callers
  return server as unknown as ServerInternals
}

/** Sets the window that each stream starts with; before `bindAsync`. */
export function setInitialWindow(server: Server, windowBytes: number): void {
  const { commonServerOptions } = internalsOf(server)
  assert(commonServerOptions !== undefined, 'grpc-js has no commonServerOptions any more')
  commonServerOptions.settings = {
    ...commonServerOptions.settings,
    initialWindowSize: windowBytes,
  }
}

/**
 * Sets how many calls a client may give up on one connection: `burst` at once, and `perSecond` over time; before `bindAsync`.
 * Beyond it the connection is ended, with all the calls on it.
 */
export function setResetLimit(server: Server, burst: number, perSecond: number): void {
  const { commonServerOptions } = internalsOf(server)
  assert(commonServerOptions !== undefined, 'grpc-js has no commonServerOptions any more')
  commonServerOptions.streamResetBurst = burst
  commonServerOptions.streamResetRate = perSecond
}

/** The listening HTTP/2 servers; after `bindAsync`. */
export function http2ServersOf(server: Server): readonly Http2Server[] {
  const { http2Servers } = internalsOf(server)
  assert(http2Servers instanceof Map, 'grpc-js has no http2Servers any more')
  return [...http2Servers.keys()]
}

/** Sets the window of a whole connection, which otherwise caps all its streams at 64 KiB per round trip. */
export function setSessionWindow(session: Http2Session, windowBytes: number): void {
  // Only sessions of a server have it, which the types do not say.
  if ('setLocalWindowSize' in session) session.setLocalWindowSize(windowBytes)
}

/** Takes the place of grpc-js as the listener for streams, and gives back its handler. */
export function interceptStreams(
  http2Server: Http2Server,
  intercept: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, next: StreamHandler) => void,
): void {
  const listeners = http2Server.listeners('stream')
  const [listener] = listeners
  assert(listeners.length === 1 && listener !== undefined, 'grpc-js listens for streams otherwise')
  http2Server.removeAllListeners('stream')
  const next: StreamHandler = (stream, headers) => void listener.call(http2Server, stream, headers)
  http2Server.on('stream', (stream, headers) => intercept(stream, headers, next))
}

/** The HTTP/2 stream under a server call. */
export function streamOf(call: object): ServerHttp2Stream {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- private members, checked below
  const { stream } = (call as { readonly call: { readonly stream?: ServerHttp2Stream } }).call
  assert(stream !== undefined, 'grpc-js keeps the stream of a call elsewhere')
  return stream
}

export type { AnswerHead } from './http1/answer-head.ts'
export type { BodyReader, Exchange } from './http1/exchange.ts'
export type { HttpFault } from './http1/http-fault.ts'
export type { ConnectionTimes, RequestHandler, WholeAnswer } from './http1/http1-connection.ts'
export { Http1Connections } from './http1/http1-connections.ts'
export { countOf, type RequestHead } from './http1/request-head.ts'
export { ErrorCode } from './http2/error-code.ts'
export { encodeFields, type FieldBlock } from './http2/hpack/encoder.ts'
export {
  type ConnectionHandler,
  type ConnectionOptions,
  type Http2Bounds,
  Http2Connection,
} from './http2/http2-connection.ts'
export { openHttp2Connection, type SocketHandler } from './http2/open-http2-connection.ts'
export type { RequestHeaders } from './http2/request-headers.ts'
export type { ByteSink } from './http2/sender.ts'
export type { ServerStream, StreamHandler } from './http2/stream.ts'
export { ownCopy, takeMemory } from './own-memory.ts'

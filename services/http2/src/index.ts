export {
  type ConnectionBounds,
  type ConnectionHandler,
  type ConnectionOptions,
  ServerConnection,
} from './connection.ts'
export { ErrorCode } from './error-code.ts'
export { encodeFields, type FieldBlock } from './hpack/encoder.ts'
export { openConnection, type SocketHandler } from './open-connection.ts'
export { ownCopy, takeMemory } from './own-memory.ts'
export type { RequestHeaders } from './request-headers.ts'
export type { ByteSink } from './sender.ts'
export type { ServerStream, StreamHandler } from './stream.ts'

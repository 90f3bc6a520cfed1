import { ServeError } from '@tutti/errors'
import { FRAME_HEADER_BYTES } from './message-reader.ts'
import type { OneAnswer, ServerCall } from './server-call.ts'

/** What a service definition of grpc-js says of a method, as far as a server needs it. */
export interface MethodDefinition {
  readonly path: string
  requestDeserialize(bytes: Buffer): object
  responseSerialize(response: object): Buffer
}

/** What a server does with a call. */
export type Handler = OneAnswer | ((call: ServerCall, definition: MethodDefinition) => void)

/** A method that is served. */
export interface Method {
  readonly path: string
  /** Its calls take a place in the admission: those with large messages. */
  readonly isAdmitted: boolean
  readonly serve: OneAnswer | ((call: ServerCall) => void)
}

/** The methods of a service that have a handler. @param admitted - paths of those that take a place in the admission. */
export function toMethods(
  service: Readonly<Record<string, MethodDefinition>>,
  handlers: Readonly<Record<string, Handler>>,
  admitted: ReadonlySet<string> = new Set(),
): Method[] {
  return Object.entries(service).flatMap(([name, definition]) => {
    const handler = handlers[name]
    if (handler === undefined) return []
    const { path } = definition
    const serve: Method['serve'] =
      typeof handler === 'function' ? (call) => handler(call, definition) : handler
    return [{ path, isAdmitted: admitted.has(path), serve }]
  })
}

interface UnaryHandler {
  /** The definition makes the requests; which type they have, each handler says. */
  answer(request: object, call: ServerCall): object | Promise<object>
}

/** Makes a handler of a function from message to message: its result or its error is the one answer of the call. */
export function unary(answer: UnaryHandler['answer']): Handler {
  return (call, definition) =>
    call.answerOne({
      answer: (bytes) => answer(deserialize(definition, bytes), call),
      encode: (response: object) => toFrame(definition.responseSerialize(response)),
    })
}

/** Puts the header of a frame before a message. Copies. */
export function toFrame(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + message.byteLength)
  frame[0] = 0
  frame.writeUInt32BE(message.byteLength, 1)
  frame.set(message, FRAME_HEADER_BYTES)
  return frame
}

/** @throws ServeError MALFORMED_MESSAGE */
export function deserialize(definition: MethodDefinition, bytes: Buffer): object {
  try {
    return definition.requestDeserialize(bytes)
  } catch (error) {
    throw new ServeError('MALFORMED_MESSAGE', `malformed message: ${String(error)}`, {
      cause: error,
    })
  }
}

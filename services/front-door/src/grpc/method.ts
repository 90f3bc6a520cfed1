import { ServeError } from '@tutti/errors'
import { FRAME_HEADER_BYTES } from './message-reader.ts'
import type { ServerCall } from './server-call.ts'

/** What a service definition of grpc-js says of a method, as far as a server needs it. */
export interface MethodDefinition {
  readonly path: string
  requestDeserialize(bytes: Buffer): object
  responseSerialize(response: object): Buffer
}

/** What a server does with a call. */
export type Handler = (call: ServerCall, definition: MethodDefinition) => void

/** A method that is served. */
export interface Method {
  readonly path: string
  /** Its calls take a place in the admission: those with large messages. */
  readonly isAdmitted: boolean
  readonly serve: (call: ServerCall) => void
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
    const serve = (call: ServerCall): void => handler(call, definition)
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
    call.readOne(
      (bytes) =>
        void answerOne(
          call,
          () => answer(deserialize(definition, bytes), call),
          (response) => toFrame(definition.responseSerialize(response)),
        ),
    )
}

/** Ends a call with the response that `answer` gives, made a frame by `encode`, or with its error. Never rejects. */
export async function answerOne<Response>(
  call: ServerCall,
  answer: () => Response | Promise<Response>,
  encode: (response: Response) => Buffer,
): Promise<void> {
  try {
    const response = await answer()
    // The deadline may have been answered, or the client gone, meanwhile.
    if (!call.isOver) call.end(encode(response))
  } catch (error) {
    call.refuse(ServeError.from(error))
  }
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

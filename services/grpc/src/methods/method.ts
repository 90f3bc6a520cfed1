import { ServeError } from '@tutti/errors'
import { checkFieldCount } from '@tutti/protocol'
import type { AdmissionClass, ApiGroup, InferenceBackend } from '@tutti/serving'
import type { TensorMemory } from '@tutti/tensor'
import { FRAME_HEADER_BYTES } from '../call/message-reader.ts'
import type { ServerCall } from '../call/server-call.ts'

/** The definition of a method in a service definition of grpc-js, as far as a server needs it. */
export interface MethodDefinition {
  readonly path: string
  requestDeserialize(bytes: Buffer): object
  responseSerialize(response: object): Buffer
}

/** A function by which a server serves a call. */
export type Handler = (call: ServerCall, definition: MethodDefinition) => void

/** The record of a method: the server and restrictions derive from it. */
export interface MethodRecord {
  /** The API group with whose methods this one is restricted. */
  readonly group: ApiGroup
  readonly admission: AdmissionClass
  /** Memory for the large tensors of inference requests; absent: they stay in their messages. */
  readonly memory?: TensorMemory | undefined
  readonly serve: Handler
}

/** A method that is served. */
export interface Method extends MethodRecord {
  readonly definition: MethodDefinition
}

/**
 * Joins the methods of a service with their records, in its order.
 *
 * @param records - by name; a method without a record is left out.
 */
export function toMethods(
  service: Readonly<Record<string, MethodDefinition>>,
  records: Readonly<Record<string, MethodRecord>>,
): Method[] {
  return Object.entries(service).flatMap(([name, definition]) => {
    const record = records[name]
    return record === undefined ? [] : [{ ...record, definition }]
  })
}

/** A method from message to message. The definition makes the requests; each handler says which type they have. */
interface UnaryMethod {
  answer(request: object, call: ServerCall): object | Promise<object>
}

/** Makes a handler of a function from message to message: its result or its error is the one answer of the call. */
export function unary(answer: UnaryMethod['answer']): Handler {
  const run = async (call: ServerCall, definition: MethodDefinition, bytes: Buffer) => {
    try {
      const response = await answer(deserialize(definition, bytes), call)
      call.end([toFrame(definition.responseSerialize(response))])
    } catch (error) {
      call.refuse(ServeError.from(error))
    }
  }
  return (call, definition) => call.readOne((bytes) => void run(call, definition, bytes))
}

/**
 * Makes a handler for calls whose message does not matter. It answers as soon as the headers are there, and reads nothing more: a
 * slow client cannot keep others from an answer.
 */
export function atOnce(answer: (call: ServerCall) => object): Handler {
  return (call, definition) => {
    const run = (): void => {
      try {
        call.end([toFrame(definition.responseSerialize(answer(call)))])
      } catch (error) {
        call.refuse(ServeError.from(error))
      }
    }
    // A client's end of the stream that comes with the headers is read before, so that it gets no reset.
    queueMicrotask(run)
  }
}

/** Makes the error UNSUPPORTED for a path that is no method of the server. */
export function unknownMethod(path: string | undefined): ServeError {
  return new ServeError('UNSUPPORTED', `The server does not implement the method ${path}`)
}

/** Checks that the server is live. @throws ServeError SERVER_NOT_READY while the process shuts down. */
export function requireLive(backend: InferenceBackend): void {
  if (!backend.isLive()) throw new ServeError('SERVER_NOT_READY', 'Server not ready')
}

/** Puts the header of a frame before a message. Copies. */
export function toFrame(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + message.byteLength)
  frame[0] = 0
  frame.writeUInt32BE(message.byteLength, 1)
  frame.set(message, FRAME_HEADER_BYTES)
  return frame
}

/** Decodes a request. @throws ServeError MALFORMED_MESSAGE, MESSAGE_TOO_LARGE for more fields than such messages have. */
export function deserialize(definition: MethodDefinition, bytes: Buffer): object {
  checkFieldCount(bytes)
  try {
    return definition.requestDeserialize(bytes)
  } catch (error) {
    throw new ServeError('MALFORMED_MESSAGE', `malformed message: ${String(error)}`, {
      cause: error,
    })
  }
}

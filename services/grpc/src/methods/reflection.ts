import { ServeError } from '@tutti/errors'
import { type Reflection, readReflection } from '@tutti/protocol'
import type { MessageReceiver } from '../call/message-reader.ts'
import type { ServerCall } from '../call/server-call.ts'
import { deserialize, type Method, type MethodDefinition, toFrame } from './method.ts'
import { SentResponses } from './sent-responses.ts'

/** Most bytes of a request, which is a name. */
const MAX_REQUEST_BYTES = 64 * 1024
/** Codes of gRPC. */
const INVALID_ARGUMENT = 3
const NOT_FOUND = 5

/** A ServerReflectionRequest: `message_request` names the field that asks. */
interface ReflectionRequest {
  readonly host: string
  readonly message_request?: string
  readonly file_by_filename?: string
  readonly file_containing_symbol?: string
  readonly file_containing_extension?: { readonly containing_type: string }
  readonly all_extension_numbers_of_type?: string
}

/**
 * Builds the methods of `grpc.reflection.v1.ServerReflection` and of its v1alpha, for clients such as grpcurl. Their calls take a
 * place in the admission: answers are much larger than requests.
 */
export function reflectionMethods(): Method[] {
  const reflection = readReflection()
  return reflection.methods.map((definition) => ({
    definition,
    group: 'metadata',
    admission: 'request',
    serve: (call) => new ReflectionCall(call, definition, reflection).start(),
  }))
}

/** One stream: an answer to each request, in order, no faster than the client takes them. */
class ReflectionCall implements MessageReceiver {
  readonly #call: ServerCall
  readonly #definition: MethodDefinition
  readonly #reflection: Reflection
  readonly #sent: SentResponses

  constructor(call: ServerCall, definition: MethodDefinition, reflection: Reflection) {
    this.#call = call
    this.#definition = definition
    this.#reflection = reflection
    this.#sent = new SentResponses(call)
  }

  start(): void {
    const call = this.#call
    call.mayIdle = true
    call.whenStopping(() => call.fail(new ServeError('SERVER_STOPPING', 'Server exiting')))
    call.read(this)
  }

  receive(bytes: Buffer): void {
    const call = this.#call
    call.backend.checkCaller?.()
    if (bytes.byteLength > MAX_REQUEST_BYTES) {
      const text = `request has ${bytes.byteLength} bytes, want at most ${MAX_REQUEST_BYTES}`
      throw new ServeError('MESSAGE_TOO_LARGE', text)
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the definition makes
    const request = deserialize(this.#definition, bytes) as ReflectionRequest
    const response = {
      valid_host: request.host,
      original_request: request,
      ...answer(request, this.#reflection),
    }
    const frame = toFrame(this.#definition.responseSerialize(response))
    call.charge(frame.byteLength)
    this.#sent.send(frame)
    call.release(bytes.byteLength)
    void this.#awaitClient()
  }

  end(surplusBytes: number): void {
    if (surplusBytes > 0) {
      const text = `stream has ${surplusBytes} bytes after its last message, want none`
      throw new ServeError('MALFORMED_MESSAGE', text)
    }
    this.#call.end()
  }

  async #awaitClient(): Promise<void> {
    const ready = this.#sent.ready()
    if (ready === undefined) return
    this.#call.pause(this)
    await ready
    this.#call.resume()
  }
}

function answer(request: ReflectionRequest, { services, files, fileOf }: Reflection): object {
  const ofFile = (name: string | undefined, asked: string): object => {
    const file = files.get(name ?? '')
    if (file === undefined) return refused(NOT_FOUND, `${asked} is not served`)
    return { file_descriptor_response: { file_descriptor_proto: [file] } }
  }
  switch (request.message_request) {
    case 'list_services':
      return { list_services_response: { service: services.map((name) => ({ name })) } }
    case 'file_by_filename':
      return ofFile(request.file_by_filename, `file ${request.file_by_filename}`)
    case 'file_containing_symbol': {
      const symbol = request.file_containing_symbol ?? ''
      return ofFile(fileOf.get(symbol), `symbol ${symbol}`)
    }
    case 'all_extension_numbers_of_type': {
      const type = request.all_extension_numbers_of_type ?? ''
      if (!fileOf.has(type)) return refused(NOT_FOUND, `type ${type} is not served`)
      return { all_extension_numbers_response: { base_type_name: type } }
    }
    case 'file_containing_extension':
      return refused(NOT_FOUND, 'no type has extensions')
    case undefined:
    default:
      return refused(INVALID_ARGUMENT, 'got no question, want list_services or another')
  }
}

function refused(error_code: number, error_message: string): object {
  return { error_response: { error_code, error_message } }
}

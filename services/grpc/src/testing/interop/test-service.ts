import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { loadPackageDefinition, type ServiceClientConstructor } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { ServeError, STATUS_CODES, type StatusCode } from '@tutti/errors'
import type { ServerCall } from '../../call/server-call.ts'
import {
  deserialize,
  type Handler,
  type Method,
  type MethodDefinition,
  toFrame,
  toMethods,
  unary,
} from '../../methods/method.ts'
import { SentResponses } from '../../methods/sent-responses.ts'

interface EchoStatus {
  readonly code: number
  readonly message: string
}

interface SimpleRequest {
  readonly response_size: number
  readonly response_status: EchoStatus | null
}

interface StreamingRequest {
  readonly response_parameters: readonly {
    readonly size: number
    readonly interval_us: number
  }[]
  readonly response_status: EchoStatus | null
}

const payload = (size: number) => ({ payload: { type: 0, body: Buffer.alloc(size) } })

function statusError({ code, message }: EchoStatus): ServeError | undefined {
  const name = Object.entries(STATUS_CODES).find(([, number]) => number === code)?.[0]
  if (code === 0 || name === undefined) return undefined
  return new ServeError('INTERNAL', message, { code: name as StatusCode })
}

function send(
  sent: SentResponses,
  definition: MethodDefinition,
  size: number,
): Promise<void> | undefined {
  sent.send(toFrame(definition.responseSerialize(payload(size))))
  return sent.ready()
}

const unaryCall: Handler = (call, definition) =>
  call.readOne((bytes) => {
    const request = deserialize(definition, bytes) as SimpleRequest
    const error = request.response_status && statusError(request.response_status)
    if (error) return call.refuse(error)
    call.end([toFrame(definition.responseSerialize(payload(request.response_size)))])
  })

/** Answers a request with its responses, at their intervals. */
async function answer(
  call: ServerCall,
  sent: SentResponses,
  definition: MethodDefinition,
  request: StreamingRequest,
): Promise<void> {
  for (const { size, interval_us } of request.response_parameters) {
    if (interval_us > 0) await sleep(interval_us / 1000)
    await send(sent, definition, size)
  }
  const error = request.response_status && statusError(request.response_status)
  if (error) call.refuse(error)
}

/** One after the other, as the cases expect; the end of the requests ends the call. */
const streaming: Handler = (call, definition) => {
  let turn = Promise.resolve()
  const sent = new SentResponses(call)
  call.read({
    receive: (bytes) => {
      const request = deserialize(definition, bytes) as StreamingRequest
      call.release(bytes.byteLength)
      turn = turn.then(() => answer(call, sent, definition, request))
    },
    end: () => void turn.then(() => call.end()),
  })
}

const streamingInputCall: Handler = (call, definition) => {
  let size = 0
  call.read({
    receive: (bytes) => {
      const { payload } = deserialize(definition, bytes) as { payload: { body: Buffer } }
      size += payload.body.byteLength
      call.release(bytes.byteLength)
    },
    end: () => call.end([toFrame(definition.responseSerialize({ aggregated_payload_size: size }))]),
  })
}

/** Builds the methods of `grpc.testing.TestService`, which gRPC's interop clients call to check a server. */
export function testMethods(): readonly Method[] {
  const proto = fileURLToPath(new URL('./test-service.proto', import.meta.url))
  const root = loadPackageDefinition(loadSync(proto, { keepCase: true, defaults: true })) as {
    readonly grpc: { readonly testing: { readonly TestService: ServiceClientConstructor } }
  }
  const handlers = {
    EmptyCall: unary(() => ({})),
    UnaryCall: unaryCall,
    StreamingOutputCall: streaming,
    StreamingInputCall: streamingInputCall,
    FullDuplexCall: streaming,
  }
  const records = Object.entries(handlers).map(
    ([name, serve]) => [name, { group: 'inference', admission: 'control', serve }] as const,
  )
  return toMethods(root.grpc.testing.TestService.service, Object.fromEntries(records))
}

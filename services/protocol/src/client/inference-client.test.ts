import { Server, ServerCredentials, type UntypedServiceImplementation } from '@grpc/grpc-js'
import { type Reason, ServeError } from '@tutti/errors'
import type { NamedTensor } from '@tutti/tensor'
import t, { type Test } from 'tap'
import { decodeInferRequest, encodeInferResponseFrame } from '../infer/server-codec.ts'
import { encodeStreamResponseFrame } from '../infer/stream-frame.ts'
import { inferenceServices } from '../services.ts'
import { toServiceError } from '../testing/service-error.ts'
import { InferenceClient } from './inference-client.ts'

/** grpc-js puts the header before a message itself. */
const FRAME_HEADER_BYTES = 5

const x: NamedTensor = { name: 'x', datatype: 'UINT8', shape: [2], data: Uint8Array.of(1, 2) }
const ask = { modelName: 'm', id: 'r', inputs: [x] }

interface UnaryCall {
  readonly request: Buffer
  readonly metadata: { get(key: string): unknown[] }
  getDeadline(): number | Date
  once(event: 'cancelled', listener: () => void): void
}
type Callback = (error: object | null, answer?: Buffer) => void
type ObjectCallback = (error: object | null, answer?: object) => void

/** A server with only the handlers that a test needs. */
async function openServer(
  t: Test,
  handlers: UntypedServiceImplementation,
): Promise<InferenceClient> {
  const server = new Server({ 'grpc.max_receive_message_length': -1 })
  server.addService(inferenceServices().inference, handlers)
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    )
  })
  const client = new InferenceClient({ address: `127.0.0.1:${port}` })
  t.teardown(() => {
    client.close()
    server.forceShutdown()
  })
  return client
}

function echo(bytes: Buffer): Buffer {
  const { modelName, id, inputs, rawInputContents } = decodeInferRequest(bytes)
  const outputs = inputs.map(({ name, shape }, i) => ({
    name,
    datatype: 'UINT8' as const,
    shape,
    data: rawInputContents[i] ?? new Uint8Array(0),
  }))
  const response = { modelName, modelVersion: '1', id, parameters: new Map(), outputs }
  return encodeInferResponseFrame(response).subarray(FRAME_HEADER_BYTES)
}

await t.test('a request goes out and its answer comes back', async (t) => {
  const client = await openServer(t, {
    ModelInfer: ({ request, metadata }: UnaryCall, callback: Callback) => {
      t.strictSame(metadata.get('k'), ['v'])
      callback(null, echo(request))
    },
    ServerLive: (_call: UnaryCall, callback: (error: null, answer: object) => void) =>
      callback(null, { live: true }),
  })
  const answer = await client.infer(ask, { headers: { k: 'v' } })
  t.match(answer, { modelName: 'm', modelVersion: '1', id: 'r' })
  t.strictSame([...(answer.outputs[0]?.data ?? [])], [1, 2])
  const live = await new Promise((resolve) =>
    client.objects.ServerLive({}, (_, value) => resolve(value)),
  )
  t.strictSame(live, { live: true }, 'the other methods are there as objects')
})

await t.test('errors come back as they were thrown', async (t) => {
  const error = new ServeError('QUEUE_FULL', 'Exceeds maximum queue size', {
    details: { model: 'm' },
  })
  const client = await openServer(t, {
    ModelInfer: (_call: UnaryCall, callback: Callback) => callback(toServiceError(error)),
  })
  await t.rejects(client.infer(ask), {
    reason: 'QUEUE_FULL',
    code: 'UNAVAILABLE',
    message: error.message,
    details: error.details,
  })
})

await t.test('an answer that does not decode is refused', async (t) => {
  const client = await openServer(t, {
    ModelInfer: (_call: UnaryCall, callback: Callback) => callback(null, Buffer.from([0x0a, 9])),
  })
  await t.rejects(client.infer(ask), { reason: 'MALFORMED_MESSAGE', message: /malformed/ })
})

await t.test('the timeout travels, and a signal cancels', async (t) => {
  const seen = Promise.withResolvers<void>()
  const cancelled = Promise.withResolvers<void>()
  const client = await openServer(t, {
    ModelInfer: (call: UnaryCall) => {
      t.not(call.getDeadline(), Number.POSITIVE_INFINITY)
      call.once('cancelled', cancelled.resolve)
      seen.resolve()
    },
  })
  const cancel = new AbortController()
  const answer = client.infer(ask, { signal: cancel.signal, timeoutMs: 600_000 })
  await seen.promise
  cancel.abort()
  await t.rejects(answer, { reason: 'CANCELLED', message: /./ })
  await cancelled.promise
  const gone = AbortSignal.abort(new ServeError('CANCELLED', 'before it began'))
  await t.rejects(client.infer(ask, { signal: gone }), {
    reason: 'CANCELLED',
    message: 'before it began',
  })
})

await t.test(
  'a model is decoupled if the server says so, and not if it does not tell',
  async (t) => {
    const tensor = { name: 'x', datatype: 'UINT8', shape: ['-1', '2'] }
    const metadata = { name: 'm', inputs: [tensor], outputs: [tensor] }
    const open = (ModelConfig?: (call: UnaryCall, callback: ObjectCallback) => void) =>
      openServer(t, {
        ModelMetadata: (_call: UnaryCall, callback: ObjectCallback) => callback(null, metadata),
        ...(ModelConfig && { ModelConfig }),
      })
    const failing = (reason: Reason) =>
      open((_call, callback) => callback(toServiceError(new ServeError(reason, 'no luck'))))
    const decoupled = { config: { model_transaction_policy: { decoupled: true } } }
    t.strictSame(await (await open((_, callback) => callback(null, decoupled))).metadata('m', ''), {
      name: 'm',
      inputs: [{ ...tensor, shape: [-1, 2] }],
      outputs: [{ ...tensor, shape: [-1, 2] }],
      isDecoupled: true,
    })
    for (const client of [await open(), await failing('NOT_FOUND')]) {
      t.match(await client.metadata('m', ''), { isDecoupled: false })
    }
    for (const reason of ['DEADLINE_EXCEEDED', 'SERVER_NOT_READY', 'INTERNAL'] as const) {
      await t.rejects((await failing(reason)).metadata('m', ''), { reason, message: 'no luck' })
    }
  },
)

interface StreamCall {
  on(event: 'data', listener: (bytes: Buffer) => void): void
  on(event: 'end', listener: () => void): void
  write(bytes: Buffer): void
  end(): void
  emit(event: 'error', error: object): void
}

await t.test('a stream carries many requests and ends', async (t) => {
  const client = await openServer(t, {
    ModelStreamInfer: (call: StreamCall) => {
      call.on('data', (bytes) => {
        const frame = encodeStreamResponseFrame({ errorMessage: decodeInferRequest(bytes).id })
        call.write(frame.subarray(FRAME_HEADER_BYTES))
      })
      call.on('end', () => call.end())
    },
  })
  const stream = client.openStream()
  for (const id of ['a', 'b']) await stream.send({ ...ask, id })
  stream.end()
  const seen: string[] = []
  for await (const { errorMessage } of stream.responses()) seen.push(errorMessage)
  t.strictSame(seen, ['a', 'b'])
})

await t.test('a stream that fails throws the error of the server', async (t) => {
  const error = new ServeError('ENGINE_FAILED', 'no luck')
  const client = await openServer(t, {
    ModelStreamInfer: (call: StreamCall) =>
      call.on('data', () => call.emit('error', toServiceError(error))),
  })
  const stream = client.openStream()
  await stream.send(ask)
  await t.rejects(stream.responses().next(), { reason: 'ENGINE_FAILED', message: 'no luck' })
})

await t.test('a stream that was cancelled before it began ends at once', async (t) => {
  const client = await openServer(t, { ModelStreamInfer: () => {} })
  const stream = client.openStream({ signal: AbortSignal.abort() })
  await t.rejects(stream.responses().next(), { reason: 'CANCELLED', message: /./ })
})

import { once } from 'node:events'
import { compressionAlgorithms, credentials, type ServiceError, status } from '@grpc/grpc-js'
import { ServeError } from '@tutti/errors'
import { decodeInferResponse, inferenceServices } from '@tutti/protocol'
import { openObjectClient } from '@tutti/protocol/client'
import { Admission } from '@tutti/serving'
import { echo, response } from '@tutti/serving/testing'
import { decodeBytesTensor, type NamedTensor, type Parameter } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { inferObject, openTestServer, type TestServer } from './testing/test-server.ts'

const floats = (...values: number[]) => new Uint8Array(Float32Array.from(values).buffer)
const x: NamedTensor = { name: 'x', datatype: 'FP32', shape: [1, 2], data: floats(1, 2) }
const ask = { modelName: 'm', inputs: [x] }

/** Sends any bytes as a ModelInferRequest. */
function inferBytes(served: TestServer, bytes: Buffer): Promise<ServiceError | Buffer> {
  const { ModelInfer } = inferenceServices().inference
  return new Promise((resolve) => {
    served.client.objects.makeUnaryRequest(
      ModelInfer.path,
      ModelInfer.requestSerialize,
      ModelInfer.responseDeserialize,
      bytes,
      (error, answer) => resolve(error ?? answer ?? Buffer.alloc(0)),
    )
  })
}

await t.test('a request is answered with what the model gives', async (t) => {
  const parameters = new Map<string, Parameter>([
    ['b', { kind: 'bool', value: false }],
    ['i', { kind: 'int64', value: -5n }],
    ['s', { kind: 'string', value: 'é' }],
    ['d', { kind: 'double', value: 0.5 }],
    ['', { kind: 'bool', value: true }],
  ])
  const served = await openTestServer(t, { m: {} })
  const answer = await served.client.infer({ ...ask, id: 'r1', parameters })
  t.match(answer, { modelName: 'm', modelVersion: '1', id: 'r1' })
  t.strictSame(new Map(answer.parameters), parameters)
  t.strictSame(answer.outputs.map(toPlain), [toPlain(x)])
  t.strictSame(served.backend.requests[0]?.requestedOutputs, [])
})

await t.test('all outputs go raw, one entry each, empty ones too', async (t) => {
  const empty: NamedTensor = { name: 'e', datatype: 'INT64', shape: [0], data: new Uint8Array(0) }
  const served = await openTestServer(t, { m: {} })
  const answer = await served.client.infer({ modelName: 'm', inputs: [empty, x] })
  t.strictSame(answer.outputs.map(toPlain), [empty, x].map(toPlain))
})

await t.test('known parameters become the context of the request', async (t) => {
  const served = await openTestServer(t, { m: {} })
  await inferObject(served, {
    id: 'r',
    parameters: {
      sequence_id: { int64_param: '-1' },
      sequence_start: { bool_param: true },
      sequence_end: { bool_param: true },
      priority: { uint64_param: '3' },
      timeout: { int64_param: '-2' },
      triton_enable_empty_final_response: { bool_param: true },
      mine: { string_param: 'x' },
    },
  })
  t.strictSame(served.backend.requests[0]?.context, {
    id: 'r',
    correlationId: 2n ** 64n - 1n,
    sequenceStart: true,
    sequenceEnd: true,
    priority: 3n,
    timeoutUs: 2n ** 64n - 2n,
    parameters: new Map([['mine', { kind: 'string', value: 'x' }]]),
  })
  await inferObject(served, { parameters: { sequence_id: { string_param: 'a' } } })
  t.equal(served.backend.requests[1]?.context.correlationId, 'a')
})

const typed = (datatype: string, contents: object) => ({
  inputs: [{ name: 'x', datatype, shape: ['1'], contents }],
})
await t.test('typed contents become the bytes that raw contents would be', async (t) => {
  const served = await openTestServer(t, { m: {} })
  const cases: readonly (readonly [string, object, Uint8Array])[] = [
    ['BOOL', { bool_contents: [true, false] }, Uint8Array.of(1, 0)],
    ['INT8', { int_contents: [-1, 300] }, Uint8Array.of(255, 44)],
    ['INT16', { int_contents: [-2, 1] }, new Uint8Array(Int16Array.of(-2, 1).buffer)],
    ['INT32', { int_contents: [-3, 1] }, new Uint8Array(Int32Array.of(-3, 1).buffer)],
    ['INT64', { int64_contents: ['-4', '1'] }, new Uint8Array(BigInt64Array.of(-4n, 1n).buffer)],
    ['UINT8', { uint_contents: [255, 257] }, Uint8Array.of(255, 1)],
    ['UINT16', { uint_contents: [65535] }, Uint8Array.of(255, 255)],
    ['UINT32', { uint_contents: [2 ** 32 - 1] }, Uint8Array.of(255, 255, 255, 255)],
    ['UINT64', { uint64_contents: ['18446744073709551615'] }, new Uint8Array(8).fill(255)],
    ['FP32', { fp32_contents: [1.5, -2] }, floats(1.5, -2)],
    ['FP64', { fp64_contents: [1.5] }, new Uint8Array(Float64Array.of(1.5).buffer)],
    ['BYTES', { bytes_contents: ['YWI=', ''] }, Uint8Array.of(2, 0, 0, 0, 97, 98, 0, 0, 0, 0)],
    ['FP32', {}, new Uint8Array(0)],
  ]
  for (const [datatype, contents, data] of cases) {
    await inferObject(served, typed(datatype, contents))
    t.strictSame([...(served.backend.requests.at(-1)?.inputs[0]?.data ?? [])], [...data], datatype)
  }
})

await t.test('raw entries are taken in order and surplus ones ignored', async (t) => {
  const served = await openTestServer(t, { m: {} })
  await inferObject(served, {
    inputs: [
      { name: 'x', datatype: 'UINT8', shape: ['1'] },
      { name: 'z', datatype: 'UINT8', shape: ['1'] },
    ],
    raw_input_contents: [Buffer.of(1), Buffer.of(2), Buffer.of(3)],
  })
  t.strictSame(
    served.backend.requests[0]?.inputs.map(({ name, data }) => [name, [...data]]),
    [
      ['x', [1]],
      ['z', [2]],
    ],
  )
})

await t.test('an output that is asked for twice counts once', async (t) => {
  const served = await openTestServer(t, { m: {} })
  await inferObject(served, { outputs: [{ name: 'y' }, { name: 'y' }, { name: 'z' }] })
  t.strictSame(served.backend.requests[0]?.requestedOutputs, ['y', 'z'])
})

await t.test('classes are given where they are asked for', async (t) => {
  const scores: NamedTensor = {
    name: 'y',
    datatype: 'FP32',
    shape: [2, 3],
    data: floats(0.1, 3.3, 0.2, 7, 7, -1),
  }
  const served = await openTestServer(t, { m: { labels: { y: ['a', 'b'] } } })
  const answer = await served.client.infer({
    modelName: 'm',
    inputs: [scores, x],
    outputs: [
      { name: 'y', parameters: new Map([['classification', { kind: 'int64', value: 2n }]]) },
      { name: 'x' },
    ],
  })
  const [y, other] = answer.outputs
  t.match(y, { name: 'y', datatype: 'BYTES', shape: [2, 2] })
  t.strictSame(decodeBytesTensor(y?.data ?? new Uint8Array(0)).map(String), [
    '3.300000:1:b',
    '0.200000:2',
    '7.000000:0:a',
    '7.000000:1:b',
  ])
  t.strictSame(other && toPlain(other), toPlain(x))
})

await t.test('an error of the model comes with its reason and place', async (t) => {
  const error = new ServeError('ENGINE_FAILED', "in ensemble 'e', naïve\nfailure", {
    details: { ensemble: 'e', step: 's', model: 'm', version: '3', replica: 'r-1', attempt: '2' },
  })
  const served = await openTestServer(t, {
    m: {
      // oxlint-disable-next-line require-yield -- it fails before it has anything to give
      script: async function* () {
        throw error
      },
    },
    unknown: {
      script: () => {
        throw new TypeError('odd')
      },
    },
  })
  await t.rejects(served.client.infer(ask), {
    code: 'INTERNAL',
    reason: 'ENGINE_FAILED',
    message: error.message,
    details: error.details,
  })
  await t.rejects(served.client.infer({ ...ask, modelName: 'unknown' }), {
    code: 'INTERNAL',
    reason: 'INTERNAL',
    message: 'odd',
  })
})

await t.test('a call that was let in is answered while the process shuts down', async (t) => {
  const served = await openTestServer(t, { m: {} })
  // As it is for a call whose message was still being read when the process was told to stop.
  served.backend.live = false
  t.match(await served.client.infer(ask), { modelName: 'm' })
})

await t.test('the trace context reaches the backend if it is valid', async (t) => {
  const served = await openTestServer(t, { m: {} })
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const headers: readonly (readonly [Record<string, string>, object | undefined])[] = [
    [
      { traceparent, tracestate: 'a=b' },
      { traceparent, tracestate: 'a=b' },
    ],
    [{ traceparent, tracestate: 'a'.repeat(513) }, { traceparent }],
    [{ traceparent }, { traceparent }],
    [{ traceparent: '00-0-0-01' }, undefined],
    [{}, undefined],
  ]
  for (const [sent, trace] of headers) {
    await served.client.infer(ask, { headers: sent })
    t.strictSame(served.backend.contexts.at(-1)?.trace, trace)
  }
})

await t.test('any bytes are answered or refused with a reason', async (t) => {
  const served = await openTestServer(t, { m: { script: echo() } })
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 80 }), async (bytes) => {
      const answer = await inferBytes(served, Buffer.from(bytes))
      if (Buffer.isBuffer(answer)) {
        decodeInferResponse(answer)
        return
      }
      t.not(answer.code, status.INTERNAL)
      t.not(answer.code, status.UNKNOWN)
      t.ok(answer.metadata.get('grpc-status-details-bin').length === 1, answer.details)
    }),
    { numRuns: 300 },
  )
  const cut = await inferBytes(served, Buffer.from([0x0a, 9]))
  t.match(cut, { code: status.INVALID_ARGUMENT, details: /malformed message/ })
})

await t.test('compressed requests are read', async (t) => {
  const served = await openTestServer(t, { m: {} })
  const answer = await new Promise<object>((resolve, reject) => {
    const client = openObjectClient(
      served.address,
      // The option compresses every message that the client sends.
      credentials.createInsecure(),
      {
        'grpc.default_compression_algorithm': compressionAlgorithms.gzip,
        'grpc.use_local_subchannel_pool': 1,
      },
    )
    t.teardown(() => client.close())
    client.ModelInfer(
      {
        model_name: 'm',
        ...typed('FP32', { fp32_contents: Array.from({ length: 1000 }, () => 1) }),
      },
      (error, value) => (error ? reject(error) : resolve(value ?? {})),
    )
  })
  t.match(answer, { model_name: 'm' })
})

await t.test('typed contents count once they are raw, beside their message', async (t) => {
  const count = 1000
  const seen: number[] = []
  const served: TestServer = await openTestServer(t, {
    m: {
      script: async function* (request) {
        seen.push(served.admission.bytes)
        yield response(request, [])
      },
    },
  })
  const ones = Array.from({ length: count }, () => '1')
  const request = { model_name: 'm', ...typed('INT64', { int64_contents: ones }) }
  await inferObject(served, request)
  t.equal(served.admission.bytes, 0)
  const stream = served.client.objects.ModelStreamInfer()
  for (let i = 0; i < 2; i++) {
    stream.write(request)
    await once(stream, 'data')
  }
  stream.end()
  await once(stream, 'end')
  t.equal(served.admission.bytes, 0)
  t.equal(seen.length, 3)
  // The bytes that the first request of a stream took are given back before the second.
  for (const bytes of seen) t.ok(bytes >= 9 * count && bytes < 13 * count, `${bytes} bytes`)
})

await t.test('texts and objects of a message count as what they take', async (t) => {
  const seen: number[] = []
  const served: TestServer = await openTestServer(t, {
    m: {
      script: async function* (request) {
        seen.push(served.admission.bytes)
        yield response(request, [])
      },
    },
  })
  const value = '\u0100'.repeat(200_000)
  const parameters = { p: { string_param: value } }
  await inferObject(served, { model_name: 'm', parameters })
  t.equal(served.admission.bytes, 0)
  const stream = served.client.objects.ModelStreamInfer()
  stream.write({ model_name: 'm', parameters })
  await once(stream, 'data')
  stream.end()
  await once(stream, 'end')
  t.equal(served.admission.bytes, 0)
  // The message has two bytes for each character, and so has the text; how many there are is known before it is made.
  for (const bytes of seen) t.ok(bytes >= 4 * value.length, `${bytes} bytes`)
  t.equal(seen.length, 2)
  const narrow = await openTestServer(
    t,
    { m: {} },
    { admission: new Admission({ maxBytes: 10 ** 6 }) },
  )
  await t.rejects(inferObject(narrow, { model_name: 'none', parameters }), {
    code: 'RESOURCE_EXHAUSTED',
  })
  t.equal(narrow.admission.bytes, 0)
})

function toPlain(tensor: NamedTensor): object {
  return { ...tensor, data: [...tensor.data] }
}

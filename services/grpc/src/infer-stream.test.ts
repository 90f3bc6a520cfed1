import { once } from 'node:events'
import { connect } from 'node:http2'
import { systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  encodeInferRequest,
  fromGrpcStatus,
  inferenceServices,
  type StreamResponse,
} from '@tutti/protocol'
import type { InferStream } from '@tutti/protocol/client'
import { Admission } from '@tutti/serving'
import { echo, type ModelScript, response, type ScriptedModel } from '@tutti/serving/testing'
import type { NamedTensor, Parameter } from '@tutti/tensor'
import t from 'tap'
import { openTestServer } from './testing/test-server.ts'

const x: NamedTensor = { name: 'x', datatype: 'UINT8', shape: [1], data: Uint8Array.of(7) }
const final = (value: boolean) => new Map([['triton_final_response', { kind: 'bool', value }]])
const ask = (id: string, modelName = 'm') => ({ modelName, id, inputs: [x] })

async function collect(stream: InferStream): Promise<StreamResponse[]> {
  const all: StreamResponse[] = []
  for await (const message of stream.responses()) all.push(message)
  return all
}

const brief = ({ errorMessage, response: r }: StreamResponse) => ({
  id: r?.id,
  error: errorMessage,
  final: r?.parameters.get('triton_final_response')?.value,
  outputs: r?.outputs.length,
})

/** Answers each request only when the next one is there: in the opposite of their order. */
function reversing(count: number): ModelScript {
  const gates: (() => void)[] = []
  return async function* (request) {
    const mine = new Promise<void>((resolve) => gates.push(resolve))
    if (gates.length === count) for (const open of gates.toReversed()) open()
    await mine
    yield response(request, request.inputs)
  }
}

const decoupled: ScriptedModel = {
  isDecoupled: true,
  script: async function* (request) {
    yield response(request, [x], { final: false })
    yield response(request, [x, x], { final: false })
    yield response(request, [])
  },
}

await t.test('models with one response are answered in the order of the requests', async (t) => {
  const { client } = await openTestServer(t, { m: { script: reversing(3) } })
  const stream = client.openStream()
  for (const id of ['a', 'b', 'c']) await stream.send(ask(id))
  stream.end()
  const answers = await collect(stream)
  t.strictSame(
    answers.map(brief),
    ['a', 'b', 'c'].map((id) => ({ id, error: '', final: true, outputs: 1 })),
  )
})

await t.test('errors stand in the stream, in their place, and it goes on', async (t) => {
  const { client } = await openTestServer(t, {
    m: { script: echo() },
    bad: {
      // oxlint-disable-next-line require-yield -- it fails before it has anything to give
      script: async function* () {
        throw new ServeError('ENGINE_FAILED', 'no luck')
      },
    },
  })
  const stream = client.openStream()
  await stream.send(ask('1'))
  await stream.send(ask('2', 'nope'))
  await stream.send({ ...ask('3', 'bad'), modelVersion: '5' })
  await stream.send({
    ...ask('4'),
    parameters: new Map([['timeout', { kind: 'bool', value: true }]]),
  })
  await stream.send(ask('5'))
  stream.end()
  const answers = await collect(stream)
  t.strictSame(answers.map(brief), [
    { id: '1', error: '', final: true, outputs: 1 },
    {
      id: '2',
      error: "Request for unknown model: 'nope' is not found",
      final: undefined,
      outputs: 0,
    },
    { id: '3', error: 'no luck', final: true, outputs: 0 },
    {
      id: '4',
      error: "invalid value type for 'timeout' parameter, expected int64_param.",
      final: undefined,
      outputs: 0,
    },
    { id: '5', error: '', final: true, outputs: 1 },
  ])
  t.strictSame(
    answers.slice(1, 3).map((a) => [a.response?.modelName, a.response?.modelVersion]),
    [
      ['', ''],
      ['bad', '5'],
    ],
    'only an error of the model names it',
  )
})

await t.test(
  'a model that says first that the time is over ends the stream with that',
  async (t) => {
    const { client } = await openTestServer(t, {
      late: {
        // oxlint-disable-next-line require-yield -- it fails before it has anything to give
        script: async function* (_request, { deadlineAt = 0 }) {
          // No timer can fire in between.
          while (systemClock.now() < deadlineAt) continue
          throw new ServeError('DEADLINE_EXCEEDED', 'no time')
        },
      },
      early: {
        // oxlint-disable-next-line require-yield -- it fails before it has anything to give
        script: async function* () {
          throw new ServeError('DEADLINE_EXCEEDED', 'its own time is over')
        },
      },
    })
    // Only the server is told of the deadline, so that it is its answer that is seen.
    const late = client.openStream({ headers: { 'grpc-timeout': '100m' } })
    await late.send(ask('1', 'late'))
    late.end()
    await t.rejects(collect(late), { code: 'DEADLINE_EXCEEDED' })

    const early = client.openStream({ headers: { 'grpc-timeout': '10H' } })
    await early.send(ask('1', 'early'))
    early.end()
    t.match(
      await collect(early),
      [{ errorMessage: 'its own time is over' }],
      'not that of the call',
    )
  },
)

await t.test('with triton_grpc_error the first error of a model ends the stream', async (t) => {
  const { client } = await openTestServer(t, {
    bad: {
      // oxlint-disable-next-line require-yield -- it fails before it has anything to give
      script: async function* () {
        throw new ServeError('ENGINE_FAILED', 'no luck', { details: { model: 'bad' } })
      },
    },
  })
  const stream = client.openStream({ headers: { triton_grpc_error: 'true' } })
  await stream.send(ask('1', 'nope'))
  await stream.send(ask('2', 'bad'))
  const seen: StreamResponse[] = []
  const reading = (async () => {
    for await (const message of stream.responses()) seen.push(message)
  })()
  await t.rejects(reading, { code: 'INTERNAL', reason: 'ENGINE_FAILED', message: 'no luck' })
  t.strictSame(
    seen.map(brief).map(({ id }) => id),
    ['1'],
    'an error before the model stays in it',
  )
})

await t.test('decoupled models give any number of responses', async (t) => {
  const wanted = new Map<string, Parameter>([
    ['triton_enable_empty_final_response', { kind: 'bool', value: true }],
  ])
  const { client } = await openTestServer(t, { d: decoupled })
  for (const [parameters, last] of [
    [wanted, [{ id: 'r', error: '', final: true, outputs: 0 }]],
    [new Map<string, Parameter>(), []],
  ] as const) {
    const stream = client.openStream()
    await stream.send({ ...ask('r', 'd'), parameters })
    stream.end()
    t.strictSame((await collect(stream)).map(brief), [
      { id: 'r', error: '', final: false, outputs: 1 },
      { id: 'r', error: '', final: false, outputs: 2 },
      ...last,
    ])
  }
})

await t.test('the final flag rides on the last response if that has outputs', async (t) => {
  const { client } = await openTestServer(t, { d: { isDecoupled: true, script: echo() } })
  const stream = client.openStream()
  await stream.send(ask('r', 'd'))
  stream.end()
  const [answer] = await collect(stream)
  t.strictSame(answer?.response?.parameters, final(true))
})

await t.test('an error of a decoupled model comes after its responses', async (t) => {
  const { client } = await openTestServer(t, {
    d: {
      isDecoupled: true,
      script: async function* (request) {
        yield response(request, [x], { final: false })
        throw new ServeError('ENGINE_FAILED', 'halfway')
      },
    },
  })
  const stream = client.openStream()
  await stream.send(ask('r', 'd'))
  stream.end()
  t.strictSame((await collect(stream)).map(brief), [
    { id: 'r', error: '', final: false, outputs: 1 },
    { id: 'r', error: 'halfway', final: true, outputs: 0 },
  ])
})

await t.test('a client that goes away stops all its requests', async (t) => {
  const started = Promise.withResolvers<void>()
  const aborted = Promise.withResolvers<unknown>()
  const { client, admission } = await openTestServer(t, {
    m: {
      // oxlint-disable-next-line require-yield -- it waits for the end
      script: async function* (_request, { signal }) {
        signal.addEventListener('abort', () => aborted.resolve(signal.reason), { once: true })
        started.resolve()
        await aborted.promise
        throw ServeError.from(signal.reason)
      },
    },
  })
  const stream = client.openStream()
  const reading = t.rejects(collect(stream), { code: 'CANCELLED', message: /./ })
  await stream.send(ask('r'))
  await started.promise
  stream.cancel()
  await reading
  t.match(await aborted.promise, { reason: 'CANCELLED' })
  t.equal(admission.requests, 0)
  t.equal(admission.bytes, 0)
})

await t.test('many requests at once are all answered, though few are worked on', async (t) => {
  let running = 0
  let most = 0
  const { client, admission } = await openTestServer(t, {
    m: {
      script: async function* (request) {
        running += 1
        most = Math.max(most, running)
        await new Promise(setImmediate)
        running -= 1
        yield response(request, request.inputs)
      },
    },
  })
  const stream = client.openStream()
  const answers = collect(stream)
  const ids = Array.from({ length: 500 }, (_, i) => String(i))
  for (const id of ids) await stream.send(ask(id))
  stream.end()
  t.strictSame(
    (await answers).map(({ response: r }) => r?.id),
    ids,
  )
  t.ok(most <= 64, `${most} at once`)
  t.equal(admission.bytes, 0)
})

await t.test('a model is held up while the client does not read', async (t) => {
  const chunk = { ...x, shape: [256 * 1024], data: new Uint8Array(256 * 1024) }
  let given = 0
  const { client } = await openTestServer(
    t,
    {
      d: {
        isDecoupled: true,
        script: async function* (request) {
          for (; given < 100; given++) yield response(request, [chunk], { final: given === 99 })
        },
      },
    },
    {},
  )
  const stream = client.openStream()
  await stream.send(ask('r', 'd'))
  const responses = stream.responses()
  await responses.next()
  t.ok(given < 100, `${given} of 100 were made before the client read on`)
  let seen = 1
  for await (const _ of responses) {
    seen += 1
    if (seen === 100) stream.end()
  }
  t.equal(seen, 100)
})

await t.test('a model that is held up goes on to its end when the client goes', async (t) => {
  const chunk = { ...x, shape: [4 * 2 ** 20], data: new Uint8Array(4 * 2 ** 20) }
  const ended = Promise.withResolvers<void>()
  const { client } = await openTestServer(
    t,
    {
      d: {
        isDecoupled: true,
        script: async function* (request) {
          try {
            for (let n = 0; n < 3; n++) yield response(request, [chunk], { final: n === 2 })
          } finally {
            ended.resolve()
          }
        },
      },
    },
    {},
  )
  const stream = client.openStream()
  await stream.send(ask('r', 'd'))
  await stream.responses().next()
  stream.cancel()
  await t.resolves(ended.promise)
})

await t.test('bytes that are no request end the stream with a reason', async (t) => {
  const { client } = await openTestServer(t, { m: {} })
  const { ModelStreamInfer } = inferenceServices().inference
  const call = client.objects.makeBidiStreamRequest(
    ModelStreamInfer.path,
    ModelStreamInfer.requestSerialize,
    ModelStreamInfer.responseDeserialize,
  )
  const error = new Promise<unknown>((resolve) => call.on('error', resolve))
  call.on('data', () => t.fail('nothing to answer'))
  call.write(Buffer.from([0x0a, 9]))
  t.match(fromGrpcStatus((await error) as never), {
    code: 'INVALID_ARGUMENT',
    reason: 'MALFORMED_MESSAGE',
  })
})

await t.test('a drain lets open requests finish and then fails the stream', async (t) => {
  const started = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const script: ModelScript = async function* (request) {
    started.resolve()
    await released.promise
    yield response(request, [])
  }
  const { client, server } = await openTestServer(t, { m: { script } })
  const stream = client.openStream()
  const responses = stream.responses()
  await stream.send(ask('1'))
  await started.promise
  const drained = server.drain({ timeoutMs: 60_000 })
  released.resolve()
  const first = await responses.next()
  t.equal(first.value?.response?.id, '1')
  await t.rejects(responses.next(), {
    code: 'UNAVAILABLE',
    reason: 'SERVER_STOPPING',
    message: /shutting down/,
  })
  await drained
})

await t.test('bytes over the bound end the stream', async (t) => {
  const admission = new Admission({ maxBytes: 10_000 })
  const { client } = await openTestServer(t, { m: { script: echo() } }, { admission })
  const stream = client.openStream()
  const reading = t.rejects(collect(stream), {
    code: 'RESOURCE_EXHAUSTED',
    reason: 'OVERLOADED',
    message: /./,
  })
  await stream.send({ modelName: 'm', inputs: [{ ...x, data: new Uint8Array(20_000) }] })
  await reading
  t.equal(admission.bytes, 0)
})

await t.test('a piece may end one request and begin the next, of any contents', async (t) => {
  const counted: number[] = []
  const { address, admission } = await openTestServer(t, {
    m: {
      script: async function* (request) {
        counted.push(admission.bytes)
        yield response(request, [])
      },
    },
  })
  const session = connect(`http://${address}`)
  t.teardown(() => session.destroy())
  const call = session.request({
    ':method': 'POST',
    ':path': inferenceServices().inference.ModelStreamInfer.path,
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  // Bytes that begin a piece and are no header would claim a message of 4 GiB.
  const input = { ...x, shape: [1000], data: new Uint8Array(1000).fill(0xff) }
  const message = encodeInferRequest({ modelName: 'm', inputs: [input] })
  const header = Buffer.alloc(5)
  header.writeUInt32BE(message.byteLength, 1)
  const begin = Buffer.concat([header, message.subarray(0, 500)])
  call.write(Buffer.concat([header, message, begin]))
  await once(call, 'data')
  call.end(message.subarray(500))
  call.resume()
  const [trailers] = await once(call, 'trailers')
  t.equal(trailers['grpc-status'], '0', trailers['grpc-message'])
  const [first = 0, second = 0] = counted
  // Each with what is made of it.
  t.ok(second >= message.byteLength, `${second} bytes`)
  t.equal(first, second + begin.byteLength)
  await once(call, 'close')
  t.equal(admission.bytes, 0)
})

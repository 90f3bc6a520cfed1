import { until } from '@tutti/chassis/testing'
import { inferObject } from '@tutti/grpc/testing'
import { findRegion } from '@tutti/serving'
import { echo, type ModelScript } from '@tutti/serving/testing'
import t from 'tap'
import { at, DECOUPLED, floats, openShared, restAt, streamObjects } from '../testing/open-shared.ts'

function input(parameters: object, more: object = {}) {
  return { name: 'x', datatype: 'FP32', shape: ['4'], parameters, ...more }
}

await t.test('gRPC: tensors come from shared memory and go there', async (t) => {
  const { served, memory } = await openShared(t)
  const answer = await inferObject(served, {
    inputs: [input(at(0, 16))],
    outputs: [{ name: 'x', parameters: at(32, 24) }],
  })
  t.match(answer, { outputs: [{ name: 'x', datatype: 'FP32', shape: ['4'] }] })
  t.match(answer, { raw_output_contents: [Buffer.alloc(0)] })
  t.same(memory().subarray(32, 48), floats(1, 2, 3, 4))
  t.same(served.backend.requests[0]?.inputs[0]?.data, floats(1, 2, 3, 4))
})

await t.test('gRPC: an input in shared memory takes no raw contents', async (t) => {
  const { served } = await openShared(t)
  await inferObject(served, {
    inputs: [input(at(0, 16)), { name: 'z', datatype: 'UINT8', shape: ['2'] }],
    raw_input_contents: [Buffer.of(7, 8)],
  })
  t.same(served.backend.requests[0]?.inputs[1]?.data, Buffer.of(7, 8))
})

const REFUSALS = [
  [at(0, 16, 's'), 'NOT_FOUND', "Unable to find shared memory region: 's'"],
  [at(64, 16), 'INVALID_ARGUMENT', "Invalid offset for shared memory region: 'r'"],
  [at(-1, 16), 'INVALID_ARGUMENT', "Invalid offset for shared memory region: 'r'"],
  [at(60, 16), 'INVALID_ARGUMENT', "Invalid offset + byte size for shared memory region: 'r'"],
  [at(0, -1), 'INVALID_ARGUMENT', "Invalid offset + byte size for shared memory region: 'r'"],
  [at(0, 0), 'INVALID_ARGUMENT', "Invalid offset + byte size for shared memory region: 'r'"],
] as const

await t.test('gRPC: a place that is not there is refused in Triton’s words', async (t) => {
  const { served, memory } = await openShared(t)
  const before = memory()
  for (const [parameters, code, message] of REFUSALS) {
    await t.rejects(inferObject(served, { inputs: [input(parameters)] }), { code, message })
    const outputs = [{ name: 'x', parameters }]
    await t.rejects(inferObject(served, { inputs: [input(at(0, 16))], outputs }), { code, message })
  }
  const both = input(at(0, 16), { contents: { fp32_contents: [1, 2, 3, 4] } })
  await t.rejects(inferObject(served, { inputs: [both] }), {
    code: 'INVALID_ARGUMENT',
    message: `unexpected 'content' provided when using shared memory for input tensor 'x' for model 'm'`,
  })
  t.equal(served.backend.requests.length, 0, 'no model hears of it')
  t.same(memory(), before)
})

await t.test('gRPC: an output that does not fit is an error of the answer', async (t) => {
  const { served, memory, regions } = await openShared(t)
  const before = memory()
  const outputs = [{ name: 'x', parameters: at(32, 15) }]
  await t.rejects(inferObject(served, { inputs: [input(at(0, 16))], outputs }), {
    code: 'INTERNAL',
    message:
      "shared memory size specified with the request for output 'x' (15 bytes) should be at least 16 bytes to hold the results",
  })
  t.same(memory(), before)
  regions.unregister('r')
})

await t.test('gRPC: a stream writes each response of a decoupled model', async (t) => {
  const { served, memory } = await openShared(t, { m: DECOUPLED })
  const outputs = [{ name: 'x', parameters: at(32, 16) }]
  const ask = (wanted: readonly object[]) =>
    streamObjects(served, { inputs: [input(at(0, 16))], outputs: wanted })
  const sizes = (await ask(outputs)).map(({ infer_response: r }) => r.raw_output_contents.length)
  t.same(sizes, [1, 1, 1])
  t.same(memory().subarray(32, 48), floats(1, 2, 3, 4))
  const failed = await ask([{ name: 'x', parameters: at(32, 8) }])
  t.match(failed, [{ error_message: /should be at least 16 bytes/ }])
  t.equal(failed.length, 1, 'the request is over')
})

await t.test(
  'a region is in use until its request is over, and what is given up is not written',
  async (t) => {
    const begun = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    const over = Promise.withResolvers<void>()
    const script: ModelScript = async function* (request, context) {
      begun.resolve()
      await go.promise
      try {
        yield* echo()(request, context)
      } finally {
        over.resolve()
      }
    }
    const { served, regions, memory } = await openShared(t, { m: { script } })
    const before = memory()
    const gone = new AbortController()
    const request = {
      modelName: 'm',
      inputs: [{ name: 'x', datatype: 'FP32', shape: [4], data: floats(1, 2, 3, 4) }],
      outputs: [
        {
          name: 'x',
          parameters: new Map([
            ['shared_memory_region', { kind: 'string', value: 'r' }],
            ['shared_memory_byte_size', { kind: 'int64', value: 16n }],
            ['shared_memory_offset', { kind: 'int64', value: 32n }],
          ] as const),
        },
      ],
    } as const
    const answer = served.client.infer(request, { signal: gone.signal })
    const failure = t.rejects(answer, { code: 'CANCELLED' })
    await begun.promise
    t.throws(() => regions.unregister('r'), { message: /it is currently in use/ })
    gone.abort()
    await failure
    await until('the call is over', () => served.admission.requests === 0)
    go.resolve()
    await over.promise
    regions.unregister('r')
    t.same(memory(), before)
  },
)

await t.test('with an access file only identities with control use shared memory', async (t) => {
  const { regions } = await openShared(t)
  const allowed = { name: 'a', mayControl: true, mayCall: () => true }
  const identity = { ...allowed, mayControl: false }
  t.equal(findRegion({ regions, identity: allowed }, 'r'), regions.find('r'))
  t.throws(() => findRegion({ regions, identity }, 'r'), {
    code: 'PERMISSION_DENIED',
    message: "identity 'a' may not use shared memory",
  })
})

await t.test('REST: tensors come from shared memory and go there', async (t) => {
  const { url, memory, served } = await openShared(t)
  const post = async (body: object) => {
    const answer = await fetch(`${url}/models/m/infer`, {
      method: 'POST',
      body: JSON.stringify(body),
    })
    return [answer.status, await answer.json()]
  }
  const inputs = [{ name: 'x', datatype: 'FP32', shape: [4], parameters: restAt(0, 16) }]
  const outputs = [{ name: 'x', parameters: restAt(32, 16) }]
  t.same(await post({ inputs, outputs }), [
    200,
    {
      model_name: 'm',
      model_version: '1',
      outputs: [{ name: 'x', datatype: 'FP32', shape: [4] }],
    },
  ])
  t.same(memory().subarray(32, 48), floats(1, 2, 3, 4))
  const requests = served.backend.requests.length
  const rows = [
    [404, restAt(0, 16, 's'), "Unable to find shared memory region: 's'"],
    [400, restAt(64, 16), "Invalid offset for shared memory region: 'r'"],
    [400, restAt(60, 16), "Invalid offset + byte size for shared memory region: 'r'"],
    [
      400,
      { shared_memory_region: 'r' },
      "Invalid offset + byte size for shared memory region: 'r'",
    ],
    [
      500,
      restAt(-1, 16),
      "Unable to parse 'shared_memory_offset': attempt to access JSON non-unsigned-integer as unsigned-integer",
    ],
  ] as const
  for (const [status, parameters, error] of rows) {
    t.same(await post({ inputs: [{ ...inputs[0], parameters }] }), [status, { error }])
    t.same(await post({ inputs, outputs: [{ name: 'x', parameters }] }), [status, { error }])
  }
  t.equal(served.backend.requests.length, requests, 'no model hears of these')
  const small = await post({ inputs, outputs: [{ name: 'x', parameters: restAt(32, 15) }] })
  t.match(small, [500, { error: /should be at least 16 bytes to hold the results/ }])
})

async function call(path: string, body?: object, headers: Record<string, string> = {}) {
  const answer = await fetch(path, {
    method: body === undefined ? 'GET' : 'POST',
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  return [answer.status, text === '' ? '' : JSON.parse(text)]
}

function refused(status: number, error: string) {
  return [status, { error }]
}

await t.test('REST: regions are registered, listed and forgotten', async (t) => {
  const { url, regions } = await openShared(t)
  const [r] = regions.status('r')
  const system = `${url}/systemsharedmemory`
  const cuda = `${url}/cudasharedmemory`
  const status = { name: 'r', key: r?.key, offset: 0, byte_size: 64 }
  t.same(await call(`${system}/status`), [200, [status]])
  t.same(await call(`${system}/region/r/status`), [200, [status]])
  const unknown = refused(404, "Unable to find system shared memory region: 's'")
  t.same(await call(`${system}/region/s/status`), unknown)
  const body = { key: r?.key, byte_size: 64 }
  const taken = refused(400, "shared memory region 'r' already in manager")
  t.same(await call(`${system}/region/r/register`, body), taken)
  t.same(await call(`${system}/region/s/register`, body), [200, ''])
  const nonCount = 'attempt to access JSON non-unsigned-integer as unsigned-integer'
  const rows = [
    [{}, 400, "Shared memory register request has no 'key' field"],
    [{ key: 'k' }, 400, "Shared memory register request has no 'byte_size' field"],
    [{ key: 1, byte_size: 1 }, 500, 'attempt to access JSON non-string as string'],
    [{ key: 'k', byte_size: -1 }, 500, nonCount],
    [{ key: 'k', byte_size: 1, offset: null }, 500, nonCount],
    [{ key: '/no', byte_size: 1 }, 500, "Unable to open shared memory region: '/no'"],
  ] as const
  for (const [sent, code, error] of rows) {
    t.same(await call(`${system}/region/x/register`, sent), refused(code, error))
  }
  const nameless = "'region name' is necessary to register system shared memory region"
  t.same(await call(`${system}/register`, body), refused(400, nameless))
  t.equal((await call(`${system}/region//unregister`, {}))[0], 404)
  const page = { origin: 'http://elsewhere.example' }
  t.equal((await call(`${system}/unregister`, {}, page))[0], 403)
  t.same(await call(`${system}/region/s/unregister`, {}), [200, ''])
  t.same(await call(`${cuda}/status`), [200, []])
  const absent = refused(404, "Unable to find cuda shared memory region: 'r'")
  t.same(await call(`${cuda}/region/r/status`), absent)
  const handle = { raw_handle: { b64: 'A'.repeat(86) }, device_id: 0, byte_size: 1 }
  const noGpu = refused(400, 'failed to register shared memory region: invalid args')
  t.same(await call(`${cuda}/region/g/register`, handle), noGpu)
  t.same(await call(`${cuda}/region/r/register`, handle), taken)
  const short = { ...handle, raw_handle: { b64: 'AAAA' } }
  const notHandle = refused(400, "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t")
  t.same(await call(`${cuda}/region/g/register`, short), notHandle)
  const noDevice = { raw_handle: { b64: 'AAAA' } }
  const noMember = refused(500, "attempt to access non-existing object member 'device_id'")
  t.same(await call(`${cuda}/region/g/register`, noDevice), noMember)
  t.same(await call(`${cuda}/unregister`, {}), [200, ''])
  t.same(regions.status('').length, 1, 'memory of the system is not of GPUs')
  t.same(await call(`${system}/unregister`, {}), [200, ''])
  t.same(await call(`${system}/status`), [200, []])
})

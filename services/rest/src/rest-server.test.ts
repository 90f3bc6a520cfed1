import { deflateSync, gunzipSync, gzipSync } from 'node:zlib'
import { ServeError } from '@tutti/errors'
import { modelInput } from '@tutti/model-config/testing'
import type { RunningServer } from '@tutti/serving'
import t, { type Test } from 'tap'
import type { RestServerOptions } from './rest-options.ts'
import { startRestServer } from './rest-server.ts'
import { createRestBackend, type RestBackend, response } from './testing/rest-backend.ts'

interface Setup {
  readonly url: string
  readonly server: RunningServer
  readonly backend: RestBackend
}

async function start(
  t: Test,
  backend = createRestBackend(),
  o: Partial<RestServerOptions> = {},
): Promise<Setup> {
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0, ...o })
  t.teardown(() => server.close())
  return { url: `http://127.0.0.1:${server.port}`, server, backend }
}

function fp32(...values: number[]): Uint8Array {
  return new Uint8Array(new Float32Array(values).buffer)
}

const X = { name: 'x', datatype: 'FP32', shape: [2], data: [1, 2.5] }

async function post(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  const bytes = body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body)
  return fetch(url, { method: 'POST', body: bytes, headers })
}

await t.test('every read-only path answers with its status and body', async (t) => {
  const { url } = await start(t)
  const rows: readonly (readonly [string, number, unknown])[] = [
    ['/v2/health/live', 200, ''],
    ['/v2/health/ready', 200, ''],
    ['/v2/models/echo/ready', 200, ''],
    ['/v2/models/echo/versions/1/ready', 200, ''],
    ['/v2/models/none/ready', 400, { error: 'Model version not ready' }],
    ['/v2/models/echo/versions/2/ready', 400, { error: 'Model version not ready' }],
    ['/v2/models/none', 404, { error: "Request for unknown model: 'none' is not found" }],
    ['/v2/models/none/config', 404, { error: "Request for unknown model: 'none' is not found" }],
    ['/v2/models/none/stats', 400, { error: "requested model 'none' is not available" }],
    ['/v2/', 404, { error: 'Not Found' }],
    ['/', 404, { error: 'Not Found' }],
    ['/v2/models', 404, { error: 'Not Found' }],
    ['/v2/models/echo/versions/x/ready', 404, { error: 'Not Found' }],
    ['/v2/models/echo/versions/1/nothing', 404, { error: 'Not Found' }],
    ['/v2/logging', 501, { error: 'log settings are not offered by this server' }],
    ['/v2/trace/setting', 501, { error: 'trace settings are not offered by this server' }],
    [
      '/v2/models/echo/trace/setting',
      501,
      { error: 'trace settings are not offered by this server' },
    ],
    ['/v2/systemsharedmemory/status', 200, []],
    [
      '/v2/cudasharedmemory/region/r/status',
      404,
      { error: "Unable to find cuda shared memory region: 'r'" },
    ],
  ]
  for (const [path, status, body] of rows) {
    const got = await fetch(url + path)
    const text = await got.text()
    t.equal(got.status, status, path)
    t.same(text === '' ? '' : JSON.parse(text), body, path)
  }
})

await t.test(
  'server metadata, model metadata and config are the documents that Triton sends',
  async (t) => {
    const { url } = await start(t)
    const get = async (path: string): Promise<unknown> => (await fetch(url + path)).json()
    t.match(await get('/v2'), { name: 'triton', extensions: ['classification'] })
    t.same(await get('/v2/models/echo/versions/3'), {
      name: 'echo',
      versions: ['3'],
      platform: 'onnxruntime_onnx',
      inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 2] }],
      outputs: [{ name: 'y', datatype: 'FP32', shape: [-1, 2] }],
    })
    t.match(await get('/v2/models/echo/config'), { name: 'echo', max_batch_size: 0 })
  },
)

await t.test("the config is protobuf's JSON, in the order of the .proto", async (t) => {
  const optimization = {
    gather_kernel_buffer_threshold: 0,
    priority: 'PRIORITY_DEFAULT',
    eager_batching: false,
  } as const
  const buckets = [0.5, Number.POSITIVE_INFINITY]
  const metric_control = [{ histogram_options: { buckets } }]
  const config = { model_metrics: { metric_control }, optimization }
  const { url } = await start(t, createRestBackend({ config }))
  const text = await (await fetch(`${url}/v2/models/echo/config`)).text()
  t.match(text, '"buckets":[0.5,"Infinity"]', 'JSON has no infinity')
  t.match(text, /"priority".*"gather_kernel_buffer_threshold".*"eager_batching".*"model_metrics"/)
})

await t.test('statistics print 64-bit counters with all their digits', async (t) => {
  const { url } = await start(t)
  for (const path of [
    '/v2/models/stats',
    '/v2/models/echo/stats',
    '/v2/models/echo/versions/3/stats',
  ]) {
    const text = await (await fetch(url + path)).text()
    t.match(text, '"success":{"count":4,"ns":9007199254740993}')
    t.match(JSON.parse(text), {
      model_stats: [
        { name: 'echo', inference_count: 8, execution_count: 2, batch_stats: [{ batch_size: 4 }] },
      ],
    })
  }
})

await t.test(
  'the repository index leaves empty members out and takes {"ready": true}',
  async (t) => {
    const { url } = await start(t)
    for (const path of ['/v2/repository/index', '/v2/repository/here/index']) {
      const all = await fetch(url + path, { method: 'POST' })
      t.same(await all.json(), [{ name: 'echo', version: '3', state: 'READY' }, { name: 'broken' }])
      const ready = await post(url + path, { ready: true })
      t.same(await ready.json(), [{ name: 'echo', version: '3', state: 'READY' }])
    }
    const wrong = await post(`${url}/v2/repository/index`, { ready: 'yes' })
    t.equal(wrong.status, 500)
    t.same(await wrong.json(), { error: 'attempt to access JSON non-boolean as boolean' })
  },
)

await t.test('load and unload are refused as in control mode none', async (t) => {
  const { url } = await start(t)
  for (const action of ['load', 'unload']) {
    const refused = await post(`${url}/v2/repository/models/echo/${action}`, {})
    t.equal(refused.status, 503)
    t.equal(refused.headers.get('tutti-error-reason'), 'MODEL_CONTROL_REFUSED')
    t.same(await refused.json(), {
      error: 'explicit model load / unload is not allowed if polling is enabled',
    })
    const named = await post(`${url}/v2/repository/r/models/echo/${action}`, {})
    t.equal(named.status, 501)
  }
})

await t.test('what is not offered is named, with 501', async (t) => {
  const { url } = await start(t)
  const noMemory =
    "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
  const rows = [
    ['/v2/systemsharedmemory/region/r/register', noMemory],
    ['/v2/cudasharedmemory/unregister', noMemory],
    ['/v2/logging', 'log settings are not offered by this server'],
  ] as const
  for (const [path, error] of rows) {
    const got = await post(`${url}${path}`, { key: '/k', byte_size: 1 })
    t.equal(got.status, 501, path)
    t.same(await got.json(), { error })
    t.equal(got.headers.get('tutti-error-reason'), 'UNSUPPORTED')
  }
})

await t.test('a wrong method gets 405 and the methods that are right', async (t) => {
  const { url } = await start(t)
  const rows = [
    ['POST', '/v2', 'GET'],
    ['DELETE', '/v2/models/echo', 'GET'],
    ['GET', '/v2/models/echo/infer', 'POST'],
    ['GET', '/v2/repository/index', 'POST'],
    ['PUT', '/v2/logging', 'GET, POST'],
    ['POST', '/v2/health/live', 'GET'],
  ] as const
  for (const [method, path, allow] of rows) {
    const got = await fetch(url + path, { method })
    t.equal(got.status, 405, path)
    t.equal(got.headers.get('allow'), allow)
    t.same(await got.json(), { error: 'Method Not Allowed' })
  }
  t.equal((await fetch(`${url}/v2`, { method: 'HEAD' })).status, 405)
})

await t.test('health follows the backend', async (t) => {
  const { url, backend } = await start(t)
  backend.isReadyNow = false
  t.equal((await fetch(`${url}/v2/health/ready`)).status, 400)
  t.equal((await fetch(`${url}/v2/health/live`)).status, 200)
  backend.isLiveNow = false
  t.equal((await fetch(`${url}/v2/health/live`)).status, 400)
})

await t.test('odd model names reach the backend as they are', async (t) => {
  const { url } = await start(t)
  const long = `echo${'n'.repeat(4000)}`
  for (const name of ['echo.v2.1', 'echo:latest', 'echo%2', 'echo/x', 'echo é', long]) {
    const got = await fetch(`${url}/v2/models/${encodeURIComponent(name)}`)
    t.equal(got.status, 200, name.slice(0, 20))
    t.match(await got.json(), { name })
  }
  const malformed = await fetch(`${url}/v2/models/echo%E0%A4`)
  t.equal(malformed.status, 400)
  t.match(await malformed.json(), { error: String })
})

await t.test('a JSON request is answered in JSON, with id, version and parameters', async (t) => {
  const backend = createRestBackend({
    infer: async function* (request) {
      yield response(request.inputs, {
        parameters: new Map([['n', { kind: 'int64', value: 2n ** 60n }]]),
      })
    },
  })
  const { url } = await start(t, backend)
  const got = await post(`${url}/v2/models/echo/versions/1/infer`, {
    id: 'a1',
    parameters: { priority: 3, custom: 'yes' },
    inputs: [X],
  })
  t.equal(got.status, 200)
  t.equal(got.headers.get('content-type'), 'application/json')
  t.equal(
    await got.text(),
    '{"id":"a1","model_name":"echo","model_version":"1","parameters":{"n":1152921504606846976},' +
      '"outputs":[{"name":"x","datatype":"FP32","shape":[2],"data":[1.0,2.5]}]}',
  )
  t.match(backend.requests, [
    { version: 1, request: { context: { id: 'a1', priority: 3n }, requestedOutputs: [] } },
  ])
})

await t.test('a binary request is answered with binary data where it is wanted', async (t) => {
  const { url } = await start(t)
  const json = JSON.stringify({
    inputs: [
      { name: 'x', datatype: 'FP32', shape: [2], parameters: { binary_data_size: 8 } },
      { name: 'y', datatype: 'INT8', shape: [1], parameters: { binary_data_size: 1 } },
    ],
    outputs: [{ name: 'x', parameters: { binary_data: true } }, { name: 'y' }],
  })
  const body = Buffer.concat([Buffer.from(json), fp32(1, 2), Uint8Array.of(7)])
  const got = await post(`${url}/v2/models/echo/infer`, body, {
    'Inference-Header-Content-Length': String(json.length),
  })
  t.equal(got.status, 200)
  t.equal(got.headers.get('content-type'), 'application/octet-stream')
  const answer = Buffer.from(await got.arrayBuffer())
  const length = Number(got.headers.get('inference-header-content-length'))
  t.match(JSON.parse(answer.subarray(0, length).toString()), {
    outputs: [
      { name: 'x', parameters: { binary_data_size: 8 } },
      { name: 'y', data: [7] },
    ],
  })
  t.same(answer.subarray(length), Buffer.from(fp32(1, 2)))
})

await t.test('a header length of 0 makes the whole body the only input', async (t) => {
  const input = modelInput('in', 'TYPE_FP32', [-1, 2])
  const backend = createRestBackend({
    config: { max_batch_size: 4, input: [input] },
  })
  const { url } = await start(t, backend)
  const got = await post(`${url}/v2/models/echo/infer`, fp32(1, 2, 3, 4), {
    'inference-header-content-length': '0',
  })
  t.equal(got.status, 200)
  t.equal(got.headers.get('content-type'), 'application/octet-stream')
  t.match(backend.requests[0]?.request.inputs, [{ name: 'in', shape: [1, 2, 2] }])
})

await t.test('classes replace the tensor for which they were asked', async (t) => {
  const { url } = await start(t, createRestBackend({ labels: ['cat', 'dog'] }))
  const got = await post(`${url}/v2/models/echo/infer`, {
    inputs: [X],
    outputs: [{ name: 'x', parameters: { classification: 1 } }],
  })
  t.match(await got.json(), {
    outputs: [{ name: 'x', datatype: 'BYTES', shape: [1], data: ['2.500000:1:dog'] }],
  })
})

await t.test('compressed requests and answers', async (t) => {
  const { url } = await start(t)
  const json = Buffer.from(JSON.stringify({ inputs: [X] }))
  for (const [encoding, body] of [
    ['gzip', gzipSync(json)],
    ['deflate', deflateSync(json)],
    ['identity', json],
  ] as const) {
    const got = await post(`${url}/v2/models/echo/infer`, body, {
      'content-encoding': encoding,
      'accept-encoding': encoding,
    })
    t.equal(got.status, 200, encoding)
    t.equal(got.headers.get('content-encoding'), encoding === 'identity' ? null : encoding)
    t.match(await got.json(), { outputs: [{ name: 'x', data: [1, 2.5] }] })
  }
  const unknown = await post(`${url}/v2/models/echo/infer`, json, { 'content-encoding': 'br' })
  t.equal(unknown.status, 501)
  t.equal(unknown.headers.get('accept-encoding'), 'gzip, deflate')
  t.same(await unknown.json(), { error: 'Unsupported compression type' })
  const broken = await post(`${url}/v2/models/echo/infer`, json, { 'content-encoding': 'gzip' })
  t.equal(broken.status, 400)
  t.equal(broken.headers.get('tutti-error-reason'), 'MALFORMED_MESSAGE')
  const cut = await post(`${url}/v2/models/echo/infer`, gzipSync(json).subarray(0, 20), {
    'content-encoding': 'gzip',
  })
  t.equal(cut.status, 400)
  t.ok(gunzipSync(gzipSync(json)).equals(json))
})

await t.test(
  'model errors are text/plain, request errors application/json, with where they happened',
  async (t) => {
    const failures = [
      [
        new ServeError('ENGINE_FAILED', 'boom', { details: { model: 'm', step: 's' } }),
        500,
        'text/plain',
      ],
      [new ServeError('INVALID_REQUEST', 'no'), 400, 'application/json'],
      [new ServeError('QUEUE_FULL', 'full'), 503, 'application/json'],
      [new ServeError('OVERLOADED', 'full'), 503, 'application/json'],
      [new ServeError('DEADLINE_EXCEEDED', 'late'), 504, 'application/json'],
      [new ServeError('CANCELLED', 'gone'), 400, 'application/json'],
      [new TypeError('bug'), 500, 'application/json'],
    ] as const
    for (const [error, status, type] of failures) {
      const backend = createRestBackend({
        // oxlint-disable-next-line require-yield
        infer: async function* () {
          throw error
        },
      })
      const { url } = await start(t, backend)
      const got = await post(`${url}/v2/models/echo/infer`, { inputs: [X] })
      t.equal(got.status, status)
      t.equal(got.headers.get('content-type'), type)
      t.same(await got.json(), { error: error.message })
    }
    const backend = createRestBackend({
      // oxlint-disable-next-line require-yield
      infer: async function* () {
        throw failures[0][0]
      },
    })
    const { url } = await start(t, backend)
    const got = await post(`${url}/v2/models/echo/infer`, { inputs: [X] })
    t.equal(got.headers.get('tutti-error-step'), 's')
    t.equal(got.headers.get('tutti-error-model'), 'm')
  },
)

await t.test('decoupled models and models without a response are errors', async (t) => {
  const { url } = await start(t, createRestBackend({ isDecoupled: true }))
  const decoupled = await post(`${url}/v2/models/echo/infer`, { inputs: [X] })
  t.equal(decoupled.status, 501)
  t.same(await decoupled.json(), {
    error: "HTTP end point doesn't support models with decoupled transaction policy",
  })
  const rows = [
    { final: [], status: 500 },
    { final: [true], status: 200 },
  ]
  for (const { final, status } of rows) {
    const backend = createRestBackend({
      infer: async function* (request) {
        for (const isFinal of final) yield response(request.inputs, { final: isFinal })
      },
    })
    const got = await post(`${(await start(t, backend)).url}/v2/models/echo/infer`, { inputs: [X] })
    t.equal(got.status, status)
  }
  const trailing = createRestBackend({
    infer: async function* (request) {
      yield response(request.inputs, { final: false })
      yield response([], { final: true })
    },
  })
  const got = await post(`${(await start(t, trailing)).url}/v2/models/echo/infer`, { inputs: [X] })
  t.equal(got.status, 200)
})

await t.test('the trace context travels on, and one that is not valid does not', async (t) => {
  const { url, backend } = await start(t)
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  await post(`${url}/v2/models/echo/infer`, { inputs: [X] }, { traceparent, tracestate: 'a=b' })
  const tooLong = { traceparent, tracestate: 'a'.repeat(513) }
  await post(`${url}/v2/models/echo/infer`, { inputs: [X] }, tooLong)
  await post(`${url}/v2/models/echo/infer`, { inputs: [X] }, { traceparent })
  await post(`${url}/v2/models/echo/infer`, { inputs: [X] }, { traceparent: 'nonsense' })
  t.same(
    backend.requests.map(({ context }) => context.trace),
    [{ traceparent, tracestate: 'a=b' }, { traceparent }, { traceparent }, undefined],
  )
})

await t.test('an address that cannot be listened on is a typed error', async (t) => {
  const { server } = await start(t)
  await t.rejects(
    startRestServer({ backend: createRestBackend(), address: '127.0.0.1', port: server.port }),
    { reason: 'SETTING_INVALID', message: /^cannot listen on 127\.0\.0\.1:/ },
  )
})

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseFlags, silentLogger, systemClock } from '@tutti/chassis'
import { inferObject, openTestServer } from '@tutti/grpc/testing'
import { fromGrpcStatus } from '@tutti/protocol'
import { startRestServer } from '@tutti/rest'
import { createRestBackend, response } from '@tutti/rest/testing'
import { ClientRequests } from '@tutti/serving'
import {
  readTraceFlags,
  TRACE_FLAGS,
  TraceFile,
  type TraceSettings,
  traceRequests,
} from '@tutti/telemetry'
import t, { type Test } from 'tap'

function read(...words: string[]) {
  return readTraceFlags(parseFlags(TRACE_FLAGS, words).values)
}

function settingsOf(...words: string[]): TraceSettings {
  const trace = read(...words)
  if (trace.mode !== 'triton') throw new Error('wrong mode')
  return trace.settings
}

const TIMES = {
  queueNs: 1000,
  computeInputNs: 2000,
  computeInferNs: 3000,
  computeOutputNs: 4000,
  transferNs: 0,
}

async function start(t: Test, ...words: string[]) {
  const folder = t.testdir({})
  const path = join(folder, 'trace.json')
  const traceSettings = settingsOf(`--trace-config=triton,file=${path}`, ...words)
  const file = new TraceFile({ path, log: silentLogger })
  const clock = systemClock
  const observer = traceRequests({ settings: traceSettings, file, clock })
  const backend = createRestBackend({
    infer: async function* (request) {
      yield response(request.inputs, { times: TIMES })
    },
  })
  const requests = new ClientRequests({ protocol: 'http', clock, observer })
  const o = { backend, requests, traceSettings, address: '127.0.0.1', port: 0 }
  const server = await startRestServer(o)
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${server.port}/v2`
  const infer = (id: string) =>
    fetch(`${url}/models/echo/infer`, {
      method: 'POST',
      body: JSON.stringify({
        id,
        inputs: [
          { name: 'x', datatype: 'FP32', shape: [2], data: [1.5, 2] },
          { name: 's', datatype: 'BYTES', shape: [1], data: ['a"b'] },
        ],
      }),
    })
  const read = async (name = 'trace.json') => JSON.parse(await readFile(join(folder, name), 'utf8'))
  const set = (body: object, path = '/trace/setting') =>
    fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body) })
  return { infer, file, folder, read, set, url }
}

interface TraceEvent {
  readonly id: number
  readonly timestamps?: readonly { readonly name: string; readonly ns: number }[]
  readonly request_id?: string
}

await t.test("a traced request has tritonserver's events, in a file of its form", async (t) => {
  const { infer, file, read } = await start(
    t,
    '--trace-config=level=TIMESTAMPS',
    '--trace-config=rate=2',
    '--trace-config=count=2',
  )
  for (const id of ['1', '2', '3', '4', '5', '6']) await infer(id)
  file.close()
  const events: readonly TraceEvent[] = await read()
  t.same(
    events.filter((event) => event.request_id !== undefined),
    [
      { id: 1, model_name: 'echo', model_version: 3, request_id: '2' },
      { id: 2, model_name: 'echo', model_version: 3, request_id: '4' },
    ],
  )
  const times = events.filter(({ id }) => id === 1).flatMap(({ timestamps = [] }) => timestamps)
  const ns = (name: string) => times.find((time) => time.name === name)?.ns ?? Number.NaN
  t.same(
    new Set(times.map(({ name }) => name)),
    new Set([
      'HTTP_RECV_START',
      'HTTP_RECV_END',
      'REQUEST_START',
      'QUEUE_START',
      'INFER_RESPONSE_COMPLETE',
      'COMPUTE_START',
      'COMPUTE_INPUT_END',
      'COMPUTE_OUTPUT_START',
      'COMPUTE_END',
      'REQUEST_END',
      'HTTP_SEND_START',
      'HTTP_SEND_END',
    ]),
  )
  t.equal(Math.round((ns('COMPUTE_END') - ns('QUEUE_START')) / 1000), 10)
  t.ok(ns('HTTP_RECV_START') <= ns('REQUEST_START'))
  t.ok(ns('REQUEST_END') <= ns('HTTP_SEND_END'))
})

await t.test('tensors, and files by index', async (t) => {
  const { infer, file, folder, read } = await start(
    t,
    '--trace-level=TENSORS',
    '--trace-rate=1',
    '--trace-log-frequency=2',
  )
  for (const id of ['a', 'b', 'c']) await infer(id)
  file.close()
  t.same(await readdir(folder), ['trace.json.0', 'trace.json.1'])
  const [first, second] = await read('trace.json.0')
  t.same(first, {
    id: 1,
    activity: 'TENSOR_QUEUE_INPUT',
    tensor: { name: 'x', data: '1.5,2', shape: '2', dtype: 'FP32' },
  })
  t.equal(second.tensor.data, '"a"b"')
  const last: readonly TraceEvent[] = await read('trace.json.1')
  t.same(new Set(last.map(({ id }) => id)), new Set([3]))
})

await t.test(
  'what is traced changes while the server runs, for all and for one model',
  async (t) => {
    const { infer, file, read, set, url } = await start(t)
    const first = {
      trace_level: ['OFF'],
      trace_rate: '1000',
      trace_count: '-1',
      log_frequency: '0',
      trace_mode: 'triton',
    }
    t.match(await (await fetch(`${url}/trace/setting`)).json(), first)
    t.match(await (await set({ trace_rate: '7', nope: 1 })).json(), { ...first, trace_rate: '7' })
    const own = '/models/echo/trace/setting'
    t.match(await (await set({ trace_rate: '1', trace_level: ['TIMESTAMPS'] }, own)).json(), {
      trace_rate: '1',
      trace_level: ['TIMESTAMPS'],
    })
    await set({ trace_count: '5', trace_rate: '9' })
    await infer('own')
    const now = await fetch(`${url}${own}`)
    t.match(await now.json(), { trace_rate: '1', trace_count: '4' })
    await set({ trace_rate: null, trace_level: null }, own)
    t.match(await (await fetch(`${url}${own}`)).json(), { trace_rate: '9', trace_level: ['OFF'] })
    await set({ trace_rate: null, trace_count: null })
    t.match(await (await fetch(`${url}/trace/setting`)).json(), first)
    await infer('not')
    file.close()
    const events: readonly TraceEvent[] = await read()
    t.same(
      events.flatMap((event) => event.request_id ?? []),
      ['own'],
    )
  },
)

await t.test("REST refuses in Triton's words", async (t) => {
  const { set } = await start(t)
  const rows = [
    [{ trace_file: '/x' }, 501, /^trace file location can not be updated/],
    [{ trace_level: 'TIMESTAMPS' }, 500, 'attempt to access JSON non-array as array'],
    [{ trace_level: [5] }, 500, 'attempt to access JSON non-string as string'],
    [{ trace_rate: 5 }, 500, 'attempt to access JSON non-string as string'],
    [{ trace_rate: 'x' }, 400, "Unable to parse 'trace_rate', got: x"],
    [{ trace_count: '-2' }, 400, "Unable to parse 'trace_count'. Expecting value >= -1, got: -2"],
    [
      { log_frequency: '99999999999' },
      400,
      "Unable to parse 'log_frequency', value is out of range [ 0, 4294967295 ], got: 99999999999",
    ],
    [{ trace_level: ['OFF', 'TENSORS'] }, 400, "Expect only one trace level 'OFF' is specified"],
  ] as const
  for (const [body, status, error] of rows) {
    const got = await set(body)
    t.equal(got.status, status, JSON.stringify(body))
    t.match(await got.json(), { error })
  }
  const unknown = await set({}, '/models/none/trace/setting')
  t.equal(unknown.status, 400)
  t.same(await unknown.json(), { error: 'Request for unknown model : none' })
})

await t.test('gRPC reads and sets the same; without a file nothing can be traced', async (t) => {
  const traceSettings = settingsOf()
  const served = await openTestServer(t, { m: {} }, { traceSettings })
  const ask = (settings: Record<string, { value: string[] }>, model_name = '') =>
    new Promise<unknown>((resolve, reject) => {
      served.client.objects.TraceSetting({ settings, model_name }, (error, answer) => {
        if (error === null) resolve(answer)
        else reject(fromGrpcStatus(error))
      })
    })
  t.match(await ask({}, 'm'), {
    settings: { trace_level: { value: ['OFF'] }, trace_mode: { value: ['triton'] } },
  })
  t.match(await ask({ trace_rate: { value: ['5'] } }), {
    settings: { trace_rate: { value: ['5'] } },
  })
  t.match(await ask({ trace_rate: { value: [] } }), {
    settings: { trace_rate: { value: ['1000'] } },
  })
  const rows = [
    [
      { trace_level: { value: ['TIMESTAMPS'] } },
      '',
      'Attempting to set invalid trace setting :trace file name is not given',
    ],
    [{ trace_rate: { value: ['1', '2'] } }, '', "expect only 1 value for 'trace_rate'"],
    [{}, 'none', 'Request for unknown model : none'],
  ] as const
  for (const [settings, model, message] of rows) {
    const asked = Object.fromEntries(
      Object.entries(settings).map(([name, { value }]) => [name, { value: [...value] }]),
    )
    await t.rejects(ask(asked, model), { message, code: 'INVALID_ARGUMENT' })
  }
  await t.rejects(ask({ trace_file: { value: ['/x'] } }), { code: 'UNIMPLEMENTED' })
})

await t.test(
  'gRPC requests and failures are traced too, and a full disk loses no request',
  async (t) => {
    const settings = settingsOf('--trace-file=x', '--trace-level=TIMESTAMPS', '--trace-rate=1')
    const traces: (readonly string[])[] = []
    const file = { write: (events: readonly string[]) => traces.push(events) }
    const backend = createRestBackend({
      infer: async function* (request) {
        yield* []
        throw new Error(`no ${request.context.id}`)
      },
    })
    const clock = systemClock
    const observer = traceRequests({ settings, file, clock })
    const requests = new ClientRequests({ protocol: 'grpc', clock, observer })
    const served = await openTestServer(t, {}, { requests, select: () => backend })
    await t.rejects(inferObject(served, { model_name: 'echo', id: 'x' }), { message: 'no x' })
    t.equal(traces.length, 1)
    t.match(traces[0]?.join(''), /GRPC_WAITREAD_START.*REQUEST_END.*GRPC_SEND_END/)
    const nowhere = new TraceFile({ path: '/dev/null/x', log: silentLogger })
    nowhere.write(['{}'], 0)
    nowhere.close()
  },
)

await t.test('the flags of both modes', (t) => {
  t.same(read('--trace-config=mode=opentelemetry', '--trace-config', 'level=TIMESTAMPS'), {
    mode: 'opentelemetry',
    otlpEndpoint: 'http://localhost:4318',
    serviceName: undefined,
    sampleRatio: 0.001,
  })
  const full = read(
    '--trace-config=mode=opentelemetry',
    '--trace-config=level=TIMESTAMPS',
    '--trace-config=rate=4',
    '--trace-config=opentelemetry,url=http://c:1/v1/traces',
    '--trace-config=opentelemetry,resource=service.name=mine',
  )
  t.match(full, { otlpEndpoint: 'http://c:1', serviceName: 'mine', sampleRatio: 0.25 })
  t.match(read('--trace-config=mode=opentelemetry'), { otlpEndpoint: undefined, sampleRatio: 0 })
  const rows = [
    [['level=TIMESTAMPS'], /got a level and no file, want triton,file=PATH/],
    [['level=LOUD'], /got level=LOUD, want OFF, TIMESTAMPS or TENSORS/],
    [['rate=-1'], /got rate=-1, want a whole number from 0 to 4294967295/],
    [['mode=x'], /got mode=x, want triton or opentelemetry/],
    [['nope=1'], /got "nope=1", want mode=\.\.\./],
    [['mode=opentelemetry', 'count=5'], /got count, want mode=triton with it/],
    [['mode=opentelemetry', 'opentelemetry,resource=a=b'], /got resource=a=b/],
  ] as const
  for (const [configs, message] of rows) {
    const words = configs.map((text) => `--trace-config=${text}`)
    t.throws(() => read(...words), { reason: 'FLAG_INVALID', message })
  }
  t.end()
})

import { request } from 'node:http'
import { settingsOfLevel } from '@tutti/chassis'
import { inferObject, openTestServer } from '@tutti/grpc/testing'
import { startRestServer } from '@tutti/rest'
import { createRestBackend } from '@tutti/rest/testing'
import { type HeaderFlags, readHeaderRules } from '@tutti/serving'
import { echo } from '@tutti/serving/testing'
import t, { type Test } from 'tap'

const NONE: HeaderFlags = {
  'http-header-forward-pattern': undefined,
  'grpc-header-forward-pattern': undefined,
  'http-restricted-api': [],
  'grpc-restricted-protocol': [],
}

async function startRest(t: Test, flags: Partial<HeaderFlags>) {
  const backend = createRestBackend()
  const select = readHeaderRules({ ...NONE, ...flags })('http', () => backend)
  const logSettings = settingsOfLevel('info')
  const o = { backend, select, logSettings, address: '127.0.0.1', port: 0 }
  const server = await startRestServer(o)
  t.teardown(() => server.close())
  const ask = (path: string, headers: Record<string, string> = {}, body?: object) =>
    fetch(`http://127.0.0.1:${server.port}${path}`, {
      headers,
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    })
  return { ask, backend, port: server.port }
}

const X = { name: 'x', datatype: 'FP32', shape: [1, 1], data: [1] }

await t.test('a restricted API wants its header, however its path is written', async (t) => {
  const { ask } = await startRest(t, { 'http-restricted-api': ['logging,trace:Admin-Key=a=b'] })
  for (const path of ['/v2/logging', '/v2/%6cogging', '/v2/logging?x=1', '/v2/trace/setting']) {
    const refused = await ask(path)
    t.equal(refused.status, 403, path)
    t.match(await refused.json(), { error: /is restricted, expecting header 'admin-key'$/ })
    t.not((await ask(path, { 'admin-key': 'a=b' })).status, 403, path)
    t.equal((await ask(path, { 'admin-key': 'a' })).status, 403, path)
  }
  t.equal((await ask('/v2/health/live')).status, 200)
  const infer = (headers: Record<string, string>) =>
    ask('/v2/models/echo/infer', headers, { inputs: [X] })
  t.equal((await infer({})).status, 200)
  t.equal((await infer({ 'tutti-steps': '1' })).status, 403, 'what steps take is a trace')
  t.equal((await infer({ 'tutti-steps': '1', 'admin-key': 'a=b' })).status, 200)
})

await t.test('headers that the pattern matches become parameters', async (t) => {
  const { ask, backend } = await startRest(t, { 'http-header-forward-pattern': '(?i)X-Fw-.*' })
  const headers = { 'x-fw-a': 'One', 'y-x-fw-b': 'two' }
  const body = { inputs: [X], parameters: { own: 1 } }
  t.equal((await ask('/v2/models/echo/infer', headers, body)).status, 200)
  t.same(
    [...(backend.requests[0]?.request.context.parameters ?? [])],
    [
      ['own', { kind: 'int64', value: 1n }],
      ['x-fw-a', { kind: 'string', value: 'One' }],
    ],
  )
})

await t.test('a pattern sees names as the client wrote them, and so do models', async (t) => {
  for (const [pattern, want] of [
    ['(?-i)X-Fw-.*', ['X-Fw-A']],
    ['X-Fw-.*', ['X-Fw-A', 'x-FW-b']],
  ] as const) {
    const { port, backend } = await startRest(t, { 'http-header-forward-pattern': pattern })
    const path = '/v2/models/echo/infer'
    // Not fetch, which writes names in small letters.
    const call = request({ port, path, method: 'POST', headers: { 'X-Fw-A': '1', 'x-FW-b': '2' } })
    const answer = new Promise((resolve) => call.once('response', resolve))
    call.end(JSON.stringify({ inputs: [X] }))
    t.match(await answer, { statusCode: 200 })
    t.same([...(backend.requests[0]?.request.context.parameters.keys() ?? [])], want)
  }
})

await t.test('gRPC has the same rules, with the prefix of its header', async (t) => {
  const add = readHeaderRules({
    ...NONE,
    'grpc-header-forward-pattern': 'user-agent',
    'grpc-restricted-protocol': ['statistics:key=v'],
  })
  const served = await openTestServer(t, { m: { script: echo() } })
  const select = add('grpc', () => served.backend)
  const restricted = await openTestServer(t, {}, { select })
  const raw_input_contents = [Buffer.alloc(4)]
  const inputs = [{ name: 'x', datatype: 'FP32', shape: [1, 1] }]
  await inferObject(restricted, { inputs, raw_input_contents })
  t.match([...(served.backend.requests[0]?.context.parameters.keys() ?? [])], ['user-agent'])
  const refused = new Promise((_, reject) => {
    restricted.client.objects.ModelStatistics({}, (error) => reject(error ?? new Error('let in')))
  })
  await t.rejects(refused, {
    code: 14,
    details: "This protocol is restricted, expecting header 'triton-grpc-protocol-key'",
  })
})

await t.test('flags that say nothing clear are refused', (t) => {
  const rows = [
    [{ 'http-restricted-api': ['logging'] }, /--http-restricted-api: got "logging", want APIS:/],
    [{ 'http-restricted-api': ['logs:a=b'] }, /got "logs", want one of health, metadata, /],
    [{ 'grpc-restricted-protocol': ['trace:a=b', 'trace:c=d'] }, /got "trace" twice/],
    [{ 'http-header-forward-pattern': '(' }, /got "\(", want a regular expression/],
  ] as const
  for (const [flags, message] of rows) {
    t.throws(() => readHeaderRules({ ...NONE, ...flags }), { reason: 'FLAG_INVALID', message })
  }
  t.end()
})

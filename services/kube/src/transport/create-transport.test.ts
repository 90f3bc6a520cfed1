import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Clock, createLogger, createMetrics, type Metrics } from '@tutti/chassis'
import { createManualClock, type ManualClock } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import type { KubeError } from '../kube-error.ts'
import type { ClusterAccess } from './cluster-access.ts'
import { createTransport } from './create-transport.ts'
import type { Transport, TransportRequest } from './transport.ts'

const DEFAULT_LIMIT_MS = 30_000
const LIMIT_MS = 5000

type Handler = (request: IncomingMessage, response: ServerResponse, count: number) => void

interface Bench {
  readonly transport: Transport
  readonly clock: ManualClock
  /** How long it waited before it sent a request again; such waits are over at once. */
  readonly waits: readonly number[]
  readonly metrics: Metrics
  readonly lines: string[]
  /** Requests that came. */
  count(): number
  /** Connections that were made. */
  connections(): number
}

/**
 * A server that answers as it is told, and a transport to it.
 *
 * @param isWaiting - true to have the transport wait as long as its clock says before it sends again.
 */
async function openBench(
  t: Test,
  handler: Handler,
  { isWaiting = false, ...access }: Partial<ClusterAccess> & { isWaiting?: boolean } = {},
): Promise<Bench> {
  let count = 0
  let connections = 0
  const server = createServer((request, response) => {
    count += 1
    request.resume()
    handler(request, response, count)
  })
  server.on('connection', () => {
    connections += 1
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  const clock = createManualClock()
  const waits: number[] = []
  const setTimer: Clock['setTimer'] = (delayMs, callback) => {
    const isLimit = [DEFAULT_LIMIT_MS, LIMIT_MS].includes(delayMs)
    if (isLimit || isWaiting) return clock.setTimer(delayMs, callback)
    waits.push(delayMs)
    const immediate = setImmediate(callback)
    return () => clearImmediate(immediate)
  }
  const metrics = createMetrics()
  const lines: string[] = []
  const log = createLogger({
    level: 'debug',
    name: 'test',
    destination: { write: (line) => lines.push(line) },
  })
  const transport = createTransport(
    {
      server: new URL(`http://127.0.0.1:${port}/base/`),
      credentials: () => Promise.resolve({ authorization: 'Bearer x' }),
      refresh: () => {},
      ...access,
    },
    { clock: { ...clock, setTimer }, log, metrics, userAgent: 'tester/1', random: () => 0 },
  )
  t.teardown(async () => {
    await transport.close()
    server.closeAllConnections()
    server.close()
  })
  return {
    transport,
    clock,
    waits,
    metrics,
    lines,
    count: () => count,
    connections: () => connections,
  }
}

function tick(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}

function answer(response: ServerResponse, status: number, body: unknown, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}

async function read(lines: AsyncIterable<string>): Promise<void> {
  for await (const _ of lines);
}

async function failureOf(promise: Promise<unknown>): Promise<KubeError> {
  try {
    await promise
  } catch (error) {
    return error as KubeError
  }
  throw new Error('it did not fail')
}

const GET: TransportRequest = { method: 'GET', path: '/api' }
const POST: TransportRequest = { method: 'POST', path: '/api', body: { a: 1 } }

await t.test('a request has path, query, headers and body', async (t) => {
  const bench = await openBench(t, (request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text) => {
      body += text
    })
    request.on('end', () => {
      answer(response, 201, { url: request.url, headers: request.headers, body })
    })
  })
  const { status, body } = await bench.transport.request({
    method: 'PATCH',
    path: '/apis/x%2Fy',
    query: { force: true, limit: 5, none: undefined, labelSelector: 'a=b,c' },
    body: { name: 'ü' },
    contentType: 'application/apply-patch+yaml',
  })
  t.equal(status, 201)
  t.match(body, {
    url: '/base/apis/x%2Fy?force=true&limit=5&labelSelector=a%3Db%2Cc',
    body: '{"name":"ü"}',
    headers: {
      authorization: 'Bearer x',
      'user-agent': 'tester/1',
      'content-type': 'application/apply-patch+yaml',
      'content-length': '13',
      accept: 'application/json',
    },
  })
})

await t.test('a body is written as Go writes JSON', async (t) => {
  const bench = await openBench(t, (request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text) => {
      body += text
    })
    request.on('end', () => answer(response, 201, { body }))
  })
  const { body } = await bench.transport.request({ ...POST, body: { a: 'a<b>&\u2028 \u00fc' } })
  t.match(body, { body: '{"a":"a\\u003cb\\u003e\\u0026\\u2028 \u00fc"}' })
})

await t.test('connections are kept, and watches have their own', async (t) => {
  const bench = await openBench(t, (request, response) => {
    if (request.url?.endsWith('/watch')) response.writeHead(200).write('x\n')
    else answer(response, 200, {})
  })
  for (let i = 0; i < 20; i++) await bench.transport.request(GET)
  t.equal(bench.connections(), 1)
  const streams = []
  for (let i = 0; i < 40; i++) {
    streams.push(await bench.transport.stream({ method: 'GET', path: '/watch', idleMs: LIMIT_MS }))
  }
  await bench.transport.request(GET)
  t.equal(bench.connections(), 41)
  for (const stream of streams) stream.close()
})

await t.test('no more than 32 requests are under way at once', async (t) => {
  const waiting: ServerResponse[] = []
  const bench = await openBench(t, (_, response) => {
    waiting.push(response)
  })
  const answers = Array.from({ length: 50 }, () => bench.transport.request(GET))
  while (waiting.length < 32) await tick()
  for (let i = 0; i < 50; i++) await tick()
  t.equal(waiting.length, 32)
  for (let done = 0; done < 50; ) {
    for (const response of waiting.splice(0)) {
      answer(response, 200, {})
      done += 1
    }
    await tick()
  }
  await Promise.all(answers)
  t.equal(bench.connections(), 32)
})

await t.test(
  'a request that may be sent again is, after the wait that the server asks for',
  async (t) => {
    for (const status of [429, 503]) {
      const bench = await openBench(t, (_, response, count) => {
        if (count < 3) answer(response, status, '{}', { 'retry-after': '2' })
        else answer(response, 200, { ok: true })
      })
      t.match(await bench.transport.request(GET), { body: { ok: true } })
      t.same(bench.waits, [2000, 2000])
      t.equal(bench.count(), 3)
    }
  },
)

await t.test("three times in all, and a wait that is too long is the caller's", async (t) => {
  const bench = await openBench(t, (_, response) => {
    answer(response, 429, { kind: 'Status', reason: 'TooManyRequests', message: 'slow down' })
  })
  const error = await failureOf(bench.transport.request(GET))
  t.same(bench.waits, [100, 200])
  t.match(error, { status: 429, reason: 'TooManyRequests', message: 'slow down' })
  t.equal(bench.count(), 3)
  const long = await openBench(t, (_, response) => {
    answer(response, 429, '{}', { 'retry-after': '60' })
  })
  t.match(await failureOf(long.transport.request(GET)), { retryAfterMs: 60_000 })
  t.equal(long.count(), 1)
})

await t.test('a write is sent once, unless it may be repeated', async (t) => {
  const bench = await openBench(t, (_, response) => {
    answer(response, 503, '')
  })
  const once = await failureOf(bench.transport.request(POST))
  t.match(once, { status: 503, reason: 'ServiceUnavailable', message: 'POST /api: HTTP 503' })
  t.equal(bench.count(), 1)
  const again = await failureOf(bench.transport.request({ ...POST, isIdempotent: true }))
  t.equal(again.status, 503)
  t.equal(bench.count(), 4)
})

await t.test('a connection that is lost is no answer', async (t) => {
  const bench = await openBench(t, (request) => {
    request.socket.resetAndDestroy()
  })
  const error = await failureOf(bench.transport.request(POST))
  t.match(error, { status: 0, reason: 'NoConnection', message: /^POST \/api: / })
  t.equal((await failureOf(bench.transport.request(GET))).reason, 'NoConnection')
  t.equal(bench.count(), 4)
  t.match(
    await bench.metrics.render(),
    /rest_client_requests_total\{code="<error>",method="GET",host="127[^"]*"\} 3/,
  )
})

await t.test('a body that breaks off is no answer either', async (t) => {
  const bench = await openBench(t, (request, response) => {
    response.writeHead(200, { 'content-length': 100 })
    response.write('{"a":', () => request.socket.resetAndDestroy())
  })
  const error = await failureOf(bench.transport.request({ ...GET, isIdempotent: false }))
  t.match(error, { status: 0, reason: 'NoConnection' })
})

await t.test('refused credentials are made new, once', async (t) => {
  let token = 'old'
  let refreshed = 0
  const bench = await openBench(
    t,
    (request, response) => {
      const isRight = request.headers.authorization === 'Bearer new'
      answer(response, isRight ? 200 : 401, {})
    },
    {
      credentials: () => Promise.resolve({ authorization: `Bearer ${token}` }),
      refresh: () => {
        refreshed += 1
        if (refreshed === 1) token = 'new'
      },
    },
  )
  await bench.transport.request(POST)
  t.equal(bench.count(), 2)
  token = 'gone'
  t.match(await failureOf(bench.transport.request(POST)), { status: 401 })
  t.equal(bench.count(), 4)
  t.equal(refreshed, 2)
})

await t.test('missing credentials are an error that names them', async (t) => {
  const bench = await openBench(t, () => {}, {
    credentials: () => Promise.reject(new Error('no such file')),
  })
  t.match(await failureOf(bench.transport.request(GET)), {
    status: 0,
    reason: 'NoCredentials',
    message: 'GET /api: no credentials: no such file',
  })
})

await t.test('a request that is not answered in time is given up', async (t) => {
  const bench = await openBench(t, () => {})
  const request = failureOf(bench.transport.request({ ...GET, timeoutMs: LIMIT_MS }))
  while (bench.count() === 0) await tick()
  bench.clock.advance(LIMIT_MS)
  t.match(await request, { status: 0, reason: 'Timeout', message: /no answer within 5000 ms/ })
})

await t.test('a signal ends a request, a wait and a stream', async (t) => {
  const bench = await openBench(
    t,
    (request, response, count) => {
      if (request.url?.endsWith('/watch')) response.writeHead(200).write('one\n')
      else if (count > 1) answer(response, 429, '{}')
    },
    { isWaiting: true },
  )
  const stop = new AbortController()
  const first = failureOf(bench.transport.request({ ...GET, signal: stop.signal }))
  while (bench.count() === 0) await tick()
  stop.abort(new Error('enough'))
  t.match(await first, { message: /enough/ })
  t.match(await failureOf(bench.transport.request({ ...GET, signal: stop.signal })), {
    message: /enough/,
  })

  const second = new AbortController()
  const waits = failureOf(bench.transport.request({ ...GET, signal: second.signal }))
  while (bench.count() < 2 || bench.clock.pending !== 1) await tick()
  second.abort(new Error('no more'))
  t.match(await waits, { message: /no more/ })

  const third = new AbortController()
  const stream = await bench.transport.stream({
    method: 'GET',
    path: '/watch',
    idleMs: LIMIT_MS,
    signal: third.signal,
  })
  const lines: string[] = []
  const reading = failureOf(
    (async () => {
      for await (const line of stream.lines) {
        lines.push(line)
        third.abort(new Error('read enough'))
      }
    })(),
  )
  t.match(await reading, { message: /read enough/ })
  t.same(lines, ['one'])
  t.equal(bench.clock.pending, 0, 'no timer is left')
})

await t.test('a stream gives lines as they come, whatever the pieces', async (t) => {
  const bench = await openBench(t, (_, response) => {
    response.writeHead(200)
    const bytes = Buffer.from('{"a":"ü"}\n\n{"b":1}\r\nlast')
    for (let i = 0; i < bytes.length; i++) response.write(bytes.subarray(i, i + 1))
    response.end()
  })
  const stream = await bench.transport.stream({ ...GET, idleMs: LIMIT_MS })
  const lines: string[] = []
  for await (const line of stream.lines) lines.push(line)
  t.same(lines, ['{"a":"ü"}', '{"b":1}', 'last'])
})

await t.test('a stream that is silent, lost, refused or closed', async (t) => {
  let last: ServerResponse | undefined
  const bench = await openBench(t, (_, response, count) => {
    last = response
    if (count === 3) answer(response, 410, { kind: 'Status', reason: 'Expired', message: 'old' })
    else response.writeHead(200).flushHeaders()
  })
  const open = () => bench.transport.stream({ ...GET, idleMs: LIMIT_MS })
  const silent = await open()
  const silence = failureOf(read(silent.lines))
  bench.clock.advance(4999)
  last?.write('\n')
  for (let i = 0; i < 20; i++) await tick()
  bench.clock.advance(4999)
  bench.clock.advance(1)
  t.match(await silence, { status: 0, reason: 'Timeout', message: /nothing came for 5000 ms/ })

  const lost = await open()
  const loss = failureOf(read(lost.lines))
  last?.socket?.resetAndDestroy()
  t.match(await loss, { status: 0, reason: 'NoConnection' })

  t.match(await failureOf(open()), { status: 410, reason: 'Expired', message: 'old' })

  const closed = await open()
  const end = read(closed.lines)
  closed.close()
  await end
  const unread = await open()
  unread.close()
  t.equal(bench.clock.pending, 0)
})

await t.test('the end of the transport ends all that is under way', async (t) => {
  const bench = await openBench(t, () => {})
  const request = failureOf(bench.transport.request(GET))
  while (bench.count() === 0) await tick()
  await bench.transport.close()
  t.match(await request, { reason: 'Closed' })
  t.match(await failureOf(bench.transport.request(GET)), { reason: 'Closed' })
})

await t.test(
  'an answer that is not JSON is an error, also from a proxy before the server',
  async (t) => {
    const bench = await openBench(t, (_, response, count) => {
      if (count === 1) answer(response, 200, 'hello')
      else answer(response, 404, '<html>no such host</html>')
    })
    t.match(await failureOf(bench.transport.request(GET)), { reason: 'BadResponse', status: 0 })
    t.match(await failureOf(bench.transport.request(GET)), {
      status: 404,
      reason: 'NotFound',
      message: 'GET /api: HTTP 404: <html>no such host</html>',
    })
  },
)

await t.test('requests are counted, and warnings of the server logged once', async (t) => {
  const bench = await openBench(t, (_, response) => {
    answer(response, 200, {}, { warning: '299 - "v1beta1 is going"' })
  })
  await bench.transport.request(GET)
  await bench.transport.request(GET)
  const text = await bench.metrics.render()
  t.match(text, /rest_client_requests_total\{code="200",method="GET",host="127\.0\.0\.1:\d+"\} 2/)
  t.match(text, /rest_client_request_duration_seconds_count\{verb="GET",host="127[^}]*\} 2/)
  t.equal(bench.lines.length, 1)
  t.match(JSON.parse(bench.lines[0] ?? ''), { warning: '299 - "v1beta1 is going"' })
})

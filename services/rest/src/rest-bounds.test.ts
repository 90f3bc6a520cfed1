import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { deflateSync, gzipSync } from 'node:zlib'
import { createManualClock } from '@tutti/chassis/testing'
import { type CancelSignal, ServeError } from '@tutti/errors'
import { Admission, type RunningServer } from '@tutti/serving'
import { RecordingControl } from '@tutti/serving/testing'
import t, { type Test } from 'tap'
import type { RestServerOptions } from './rest-options.ts'
import { startRestServer } from './rest-server.ts'
import { openRaw } from './testing/raw-http.ts'
import { createRestBackend, type RestBackend, response } from './testing/rest-backend.ts'

interface Setup {
  readonly url: string
  readonly port: number
  readonly server: RunningServer
  readonly backend: RestBackend
}

async function start(t: Test, o: Partial<RestServerOptions> = {}): Promise<Setup> {
  const backend = createRestBackend()
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0, ...o })
  t.teardown(() => server.close())
  return { url: `http://127.0.0.1:${server.port}`, port: server.port, server, backend }
}

/** A model that answers when it is told to, and says when a request has reached it. */
function heldModel() {
  const reached = Promise.withResolvers<CancelSignal>()
  const release = Promise.withResolvers<void>()
  const backend = createRestBackend({
    infer: async function* (request, { signal }) {
      reached.resolve(signal)
      await release.promise
      yield response(request.inputs)
    },
  })
  return { backend, reached: reached.promise, release: () => release.resolve() }
}

const JSON_BODY = JSON.stringify({
  inputs: [{ name: 'x', datatype: 'FP32', shape: [1], data: [1] }],
})

function inferHead(length: number, extra = ''): string {
  return `POST /v2/models/echo/infer HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n${extra}\r\n`
}

function aborted(signal: CancelSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason)
    else signal.addEventListener('abort', () => resolve(signal.reason), { once: true })
  })
}

/** Advances a manual clock until a promise settles: what waits on sockets needs real turns of the event loop. */
async function untilTimersWait(clock: { readonly pending: number }, count: number): Promise<void> {
  while (clock.pending < count) await nextTurn()
}

await t.test('a body over the bound is refused with 413, announced or not', async (t) => {
  const { url, port } = await start(t, { maxInputBytes: 1000 })
  const announced = await openRaw(port)
  announced.write(inferHead(1001))
  const text = await announced.until('}')
  t.match(text, 'HTTP/1.1 413')
  t.match(text, 'tutti-error-reason: MESSAGE_TOO_LARGE')
  t.match(text, 'exceeds the maximum allowed value of 1000 bytes. Use --http-max-input-size')
  announced.socket.destroy()

  const chunked = await openRaw(port)
  chunked.write(
    'POST /v2/models/echo/infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n',
  )
  chunked.write(`3e9\r\n${' '.repeat(1001)}\r\n`)
  t.match(await chunked.until('}'), 'HTTP/1.1 413')
  chunked.socket.destroy()

  const whole = await fetch(`${url}/v2/models/echo/infer`, {
    method: 'POST',
    body: 'x'.repeat(5000),
  })
  t.equal(whole.status, 413)
})

await t.test('a compressed body is bounded by what it unpacks to', async (t) => {
  const admission = new Admission()
  const { url } = await start(t, { maxInputBytes: 100_000, admission })
  const bomb = gzipSync(Buffer.alloc(50_000_000, 0x20))
  t.ok(bomb.byteLength < 100_000)
  const got = await fetch(`${url}/v2/models/echo/infer`, {
    method: 'POST',
    body: new Uint8Array(bomb),
    headers: { 'content-encoding': 'gzip' },
  })
  t.equal(got.status, 413)
  t.match(await got.json(), { error: /exceeds the maximum allowed value of 100000 bytes/ })
})

await t.test('calls without tensors take 64 KiB, inflated or not', async (t) => {
  const { url, backend } = await start(t)
  // Without it an unload is refused unread.
  backend.control = new RecordingControl()
  const body = Buffer.alloc(4 * 1024 * 1024 + 1, 0x20)
  for (const path of ['repository/index', 'repository/models/echo/unload']) {
    for (const encoding of ['identity', 'gzip', 'deflate']) {
      const way = { gzip: gzipSync, deflate: deflateSync }[encoding]
      const got = await fetch(`${url}/v2/${path}`, {
        method: 'POST',
        body: new Uint8Array(way?.(body) ?? body),
        headers: { 'content-encoding': encoding },
      })
      t.equal(got.status, 413, `${path} ${encoding}`)
      t.match(await got.json(), { error: /maximum allowed value of 65536 bytes/ })
    }
  }
})

await t.test('a compressed body is charged as it inflates, up to the process bound', async (t) => {
  const admission = new Admission({ maxBytes: 1_000_000 })
  const { url, backend } = await start(t, { admission })
  const bomb = new Uint8Array(gzipSync(Buffer.alloc(50_000_000, 0x20)))
  const headers = { 'content-encoding': 'gzip' }
  const infer = () => fetch(`${url}/v2/models/echo/infer`, { method: 'POST', body: bomb, headers })
  for (const got of await Promise.all([infer(), infer(), infer()])) {
    t.equal(got.status, 503)
    t.match(await got.json(), {
      error: /the bound is 1000000|wait for clients, the bound is 500000/,
    })
  }
  while (admission.requests > 0) await nextTurn()
  t.equal(admission.bytes, 0)
  t.equal(backend.requests.length, 0)
})

await t.test('a half body ends for the first client that needs its bytes', async (t) => {
  const admission = new Admission({ maxBytes: 100_000 })
  const { url, port } = await start(t, { admission })
  const first = await openRaw(port)
  first.write(inferHead(90_000) + ' '.repeat(60_000))
  while (admission.bytes < 60_000) await nextTurn()
  const body = JSON_BODY + ' '.repeat(60_000)
  const served = await fetch(`${url}/v2/models/echo/infer`, { method: 'POST', body })
  t.equal(served.status, 200)
  t.match(await first.until('}'), /503.*OVERLOADED.*has waited longest for its client/s)
  while (admission.bytes > 0) await nextTurn()
  t.equal(admission.requests, 0)
})

await t.test('a request over the process bound is refused with 503 and given back', async (t) => {
  const admission = new Admission({ maxRequests: 2 })
  const { url, port } = await start(t, { admission })
  const first = await openRaw(port)
  first.write(inferHead(900) + ' '.repeat(600))
  while (admission.bytes < 600) await nextTurn()
  const places = [admission.open(), admission.open()]
  for (const place of places) place.enter()
  const refused = await fetch(`${url}/v2/models/echo/infer`, { method: 'POST', body: JSON_BODY })
  t.equal(refused.status, 503)
  t.equal(refused.headers.get('tutti-error-reason'), 'OVERLOADED')
  t.match(await refused.json(), { error: /the bound is 2/ })
  first.write(' '.repeat(300))
  t.match(await first.until('}'), /503.*the bound is 2/s, 'whole by now, and without a place')
  first.socket.destroy()
  for (const place of places) place.close()
  while (admission.bytes > 0) await nextTurn()
  t.equal(admission.requests, 0)
})

await t.test('a body that does not come in time gets 408 and a closed connection', async (t) => {
  const admission = new Admission()
  const { port } = await start(t, { admission, headersTimeoutMs: 50, requestTimeoutMs: 50 })
  const client = await openRaw(port)
  client.write(inferHead(100))
  const text = await client.all
  t.match(text, 'HTTP/1.1 408')
  t.match(text, '{"error":"')
  while (admission.requests > 0) await nextTurn()
  t.equal(admission.bytes, 0)
})

await t.test('a client that leaves in the middle of its body leaves nothing behind', async (t) => {
  const admission = new Admission()
  const backend = createRestBackend()
  const arrived: unknown[] = []
  const select = (headers: object) => {
    arrived.push(headers)
    return backend
  }
  const { port, server } = await start(t, { admission, select })
  const heads = [
    inferHead(100),
    inferHead(100, 'content-encoding: gzip\r\n'),
    'POST /v2/models/echo/infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\n',
  ]
  for (const [i, head] of heads.entries()) {
    const client = await openRaw(port)
    client.write(`${head}abc`)
    while (arrived.length <= i) await nextTurn()
    client.socket.destroy()
    await once(client.socket, 'close')
    while (admission.bytes > 0) await nextTurn()
    t.equal(admission.requests, 0)
  }
  t.equal(await server.drain({ timeoutMs: 120_000 }), true)
})

await t.test('a client that leaves while the model works cancels the call', async (t) => {
  const { backend, reached, release } = heldModel()
  t.teardown(release)
  const { port } = await start(t, { backend })
  const client = await openRaw(port)
  client.write(inferHead(JSON_BODY.length) + JSON_BODY)
  const signal = await reached
  client.socket.destroy()
  const reason = await aborted(signal)
  t.match(reason, { reason: 'CANCELLED', message: 'the client went away' })
})

await t.test(
  'the timeout header makes a deadline, answered with 504 whatever the model does',
  async (t) => {
    const clock = createManualClock()
    const { backend, reached, release } = heldModel()
    t.teardown(release)
    const { url } = await start(t, { backend, clock })
    const pending = fetch(`${url}/v2/models/echo/infer`, {
      method: 'POST',
      body: JSON_BODY,
      headers: { 'tutti-timeout-ms': '250' },
    })
    const signal = await reached
    t.equal(backend.requests[0]?.context.deadlineAt, 250)
    clock.advance(250)
    const late = await pending
    t.equal(late.status, 504)
    t.same(await late.json(), { error: 'deadline of 250 ms exceeded' })
    t.match(signal.reason, { reason: 'DEADLINE_EXCEEDED' })
    for (const value of ['0', '-1', '1.5', 'soon', '1e3', '99999999999999999999']) {
      const wrong = await fetch(`${url}/v2/models/echo/infer`, {
        method: 'POST',
        body: JSON_BODY,
        headers: { 'tutti-timeout-ms': value },
      })
      t.equal(wrong.status, 400, value)
      t.same(await wrong.json(), {
        error: `header tutti-timeout-ms: got '${value}', want a whole number of milliseconds above 0`,
      })
    }
  },
)

await t.test('for a connection too many the one ends that is idle longest', async (t) => {
  const { port } = await start(t, { maxConnections: 2 })
  const held = [await openRaw(port), await openRaw(port)]
  for (const client of held) {
    client.write('GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n')
    await client.until('\r\n\r\n')
  }
  const third = await openRaw(port)
  t.match(await held.shift()?.all, 'HTTP/1.1 200')
  third.write('GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n')
  t.match(await third.until('\r\n\r\n'), 'HTTP/1.1 200')
  const closed = held[0]?.all
  held[0]?.socket.destroy()
  await closed
  let isServed = false
  while (!isServed) {
    const next = await openRaw(port)
    next.write('GET /v2/health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    isServed = (await next.all).startsWith('HTTP/1.1 200')
  }
  t.pass('a place that became free is taken again')
})

await t.test('what is no HTTP gets 400 and a closed connection', async (t) => {
  const { port } = await start(t)
  const rows = [
    ['nonsense\r\n\r\n', '400'],
    ['GET /v2 HTTP/9.9\r\n\r\n', '400'],
    [`GET /v2 HTTP/1.1\r\nhost: x\r\nh: ${'x'.repeat(20_000)}\r\n\r\n`, '431'],
    ['GET /v2/models/echo%ZZ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n', '400'],
    [
      'POST /v2/models/echo/infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
      '400',
    ],
    [
      'POST /v2/models/echo/infer HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
      '400',
    ],
  ] as const
  for (const [request, status] of rows) {
    const client = await openRaw(port)
    client.write(request)
    const text = await client.all
    t.match(text, `HTTP/1.1 ${status}`, JSON.stringify(request.slice(0, 30)))
    t.match(text, '{"error":"')
  }
})

await t.test(
  'a connection serves one request after the other, errors between them too',
  async (t) => {
    const { port } = await start(t)
    const client = await openRaw(port)
    const requests = [
      [inferHead(JSON_BODY.length) + JSON_BODY, 'HTTP/1.1 200'],
      [inferHead(3) + 'abc', 'HTTP/1.1 500'],
      ['POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc', 'HTTP/1.1 404'],
      [inferHead(3, 'content-type: ;;;\r\n') + 'abc', 'HTTP/1.1 500'],
      [inferHead(0), 'HTTP/1.1 500'],
      [inferHead(JSON_BODY.length, 'expect: 100-continue\r\n'), 'HTTP/1.1 100 Continue'],
      [JSON_BODY, '"data":[1.0]'],
    ] as const
    let seen = 0
    for (const [request, want] of requests) {
      client.write(request)
      const all = await client.until(want)
      seen = all.length
    }
    t.ok(seen > 0)
    client.socket.destroy()
  },
)

await t.test(
  'stopping refuses further requests, finishes those in flight and then drains',
  async (t) => {
    const { backend, reached, release } = heldModel()
    const { port, server, url } = await start(t, { backend })
    const idle = await openRaw(port)
    idle.write('GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n')
    await idle.until('}')
    const busy = await openRaw(port)
    busy.write(inferHead(JSON_BODY.length) + JSON_BODY)
    await reached
    server.stopAccepting()
    await idle.all
    t.pass('idle connections are closed')
    await t.rejects(fetch(`${url}/v2`), 'nothing is accepted any more')
    const drained = server.drain({ timeoutMs: 120_000 })
    // A pipelined request comes while the first one is in flight.
    busy.write('GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n')
    release()
    const text = await busy.all
    t.match(text, 'HTTP/1.1 200')
    t.match(text, 'connection: close')
    t.equal(await drained, true)
    t.equal(await server.drain({ timeoutMs: 1 }), true)
  },
)

await t.test('stopping does not cut an answer that is still being written', async (t) => {
  const data = new Uint8Array(32 * 1024 * 1024)
  const backend = createRestBackend({
    infer: async function* () {
      yield response([{ name: 'y', datatype: 'UINT8', shape: [data.byteLength], data }])
    },
  })
  const { url, server } = await start(t, { backend })
  const parameters = { binary_data_output: true }
  const answer = await fetch(`${url}/v2/models/echo/infer`, {
    method: 'POST',
    headers: { 'accept-encoding': 'identity' },
    body: JSON.stringify({ inputs: [], parameters }),
  })
  // The head is here; of the body no more than the sockets hold.
  server.stopAccepting()
  const drained = server.drain({ timeoutMs: 120_000 })
  const { byteLength } = await answer.arrayBuffer()
  t.equal(byteLength, Number(answer.headers.get('content-length')))
  t.equal(await drained, true)
})

await t.test('a drain that runs out of time answers what is left', async (t) => {
  const clock = createManualClock()
  const { backend, reached, release } = heldModel()
  t.teardown(release)
  const { port, server } = await start(t, { backend, clock })
  const client = await openRaw(port)
  client.write(inferHead(JSON_BODY.length) + JSON_BODY)
  const signal = await reached
  server.stopAccepting()
  const drained = server.drain({ timeoutMs: 5000 })
  clock.advance(5000)
  t.equal(await drained, false)
  const text = await client.all
  t.match(text, 'HTTP/1.1 503')
  t.match(text, 'tutti-error-reason: SERVER_STOPPING')
  t.match(text, '{"error":"Server exiting"}')
  t.match(signal.reason, { reason: 'SERVER_STOPPING' })
  t.equal(await server.drain({ timeoutMs: 0 }), true)
})

await t.test('closing cancels what is in flight', async (t) => {
  const { backend, reached, release } = heldModel()
  t.teardown(release)
  const { port, server } = await start(t, { backend })
  const client = await openRaw(port)
  client.write(inferHead(JSON_BODY.length) + JSON_BODY)
  const signal = await reached
  await server.close()
  await client.all
  t.ok(signal.reason instanceof ServeError)
  t.match(signal.reason, { reason: 'SERVER_STOPPING' })
})

await t.test('an answer that its client does not read is cut after its time', async (t) => {
  const clock = createManualClock()
  const data = new Uint8Array(32 * 1024 * 1024)
  const backend = createRestBackend({
    infer: async function* () {
      yield response([{ name: 'y', datatype: 'UINT8', shape: [data.byteLength], data }])
    },
  })
  const { port, server } = await start(t, { backend, clock, writeTimeoutMs: 60_000 })
  const client = await openRaw(port)
  client.socket.pause()
  const body = JSON.stringify({
    inputs: [{ name: 'x', datatype: 'FP32', shape: [1], data: [1] }],
    parameters: { binary_data_output: true },
  })
  client.write(inferHead(body.length) + body)
  while (backend.requests.length === 0) await nextTurn()
  await untilTimersWait(clock, 1)
  const drained = server.drain({ timeoutMs: 120_000 })
  clock.advance(60_000)
  t.equal(await drained, true)
  client.socket.destroy()
})

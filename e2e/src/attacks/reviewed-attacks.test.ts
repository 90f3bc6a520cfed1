import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { residentBytes } from '../control-churn.ts'
import { servesRightBytes } from '../hostile.ts'
import { restCall } from '../rest-call.ts'
import { type Serving, serve } from '../serving.ts'
import { copyModels } from '../temp-repository.ts'
import { askSmall, cpuMs, holdSmallCalls } from './held-calls.ts'
import { createRandom } from './random.ts'
import { moveWindows } from './raw-clients.ts'

t.setTimeout(300_000)

const MEBIBYTE = 2 ** 20

// The attacks of a review on a server with the defaults, one by one, as they were shown to work.
await t.test('what worked once', async (t) => {
  const serving = await serve(t, {
    repositories: [await copyModels(t, ['ens_chain', 'add_one_batch'])],
    flags: ['--model-control-mode=explicit', '--load-model=*'],
  })
  await servesRightBytes(t, serving)

  await t.test('calls that only begin take no places', async (t) => {
    const sessions = await Promise.all(Array.from({ length: 4 }, () => openSession(t, serving)))
    for (const session of sessions) {
      for (let i = 0; i < 1024; i++) call(session, 'inference.GRPCInferenceService/ModelInfer')
      // Once a ping is answered, all that was sent before it is there.
      await new Promise((resolve) => session.ping(resolve))
    }
    await servesRightBytes(t, serving)
  })

  await t.test('compressed messages stay within the memory of a router', async (t) => {
    const message = gzipSync(Buffer.alloc(250 * MEBIBYTE))
    const head = Buffer.alloc(5)
    head[0] = 1
    head.writeUInt32BE(message.byteLength, 1)
    const session = await openSession(t, serving)
    const calls = Array.from({ length: 6 }, () => {
      const stream = call(session, 'inference.GRPCInferenceService/ModelInfer')
      stream.end(Buffer.concat([head, message]))
      return once(stream, 'close')
    })
    let most = 0
    const ends: unknown[] = []
    const ended = Promise.all(calls).finally(() => ends.push(true))
    while (ends.length === 0) most = Math.max(most, await residentBytes(serving))
    await ended
    t.ok(most < 2048 * MEBIBYTE, `${most} bytes resident at most`)
    await servesRightBytes(t, serving)
  })

  await t.test('a form of a page of elsewhere loads no model', async (t) => {
    const { status } = await restCall(
      serving.httpPort,
      'POST',
      '/v2/repository/models/add_one_batch/load',
      {
        headers: { origin: 'http://evil.example', 'content-type': 'text/plain' },
        body: '{}',
      },
    )
    t.equal(status, 403)
  })

  const nested = `{"inputs":${'['.repeat(8 * MEBIBYTE)}${']'.repeat(8 * MEBIBYTE)}}`
  const elements = `${'1.5,'.repeat(6 * MEBIBYTE)}1`
  const wide = `{"inputs":[{"name":"X","datatype":"FP32","shape":[1,16],"data":[${elements}]}]}`
  for (const [name, body] of Object.entries({ nested, wide })) {
    await t.test(`a large ${name} body of JSON lets probes through`, async (t) => {
      const { count, longestMs, wholeMs } = await probesDuring(serving, async () => {
        const path = '/v2/models/add_one_batch/infer'
        const { status } = await restCall(serving.httpPort, 'POST', path, { body })
        t.equal(status, 500, 'as of Triton: what it cannot parse is INTERNAL')
      })
      // A loop that is held answers one probe, when the body is done.
      t.ok(longestMs < wholeMs / 2, `one of ${count} probes took ${longestMs} of ${wholeMs} ms`)
    })
  }

  await t.test('windows of many calls are not moved for a few bytes', async (t) => {
    const before = cpuMs(serving.process.pid)
    await moveWindows(serving.grpcPort, createRandom(1), { calls: 1000, changes: 40_000 })
    const spent = cpuMs(serving.process.pid) - before
    t.ok(spent < 400, `${spent} ms of processor time`)
    await servesRightBytes(t, serving)
  })

  await t.test('small calls that do not end keep nobody from health and metadata', async (t) => {
    const attackers = Array.from({ length: 8 }, (_, i) =>
      holdSmallCalls(serving.grpcPort, createRandom(i)),
    )
    for (let i = 0; i < 10; i += 1) t.same(await askSmall(serving.grpcPort), [])
    await Promise.all(attackers)
  })

  await t.test('large JSON bodies let a smaller one pass', async (t) => {
    const path = '/v2/models/add_one_batch/infer'
    const elements = `${'1.25,'.repeat(5 * MEBIBYTE)}1`
    const body = gzipSync(`{"inputs":[],"x":[${elements}]}`)
    const headers = { 'content-encoding': 'gzip' }
    const done: number[] = []
    const large = Array.from({ length: 6 }, async () => {
      const { status } = await restCall(serving.httpPort, 'POST', path, { headers, body })
      done.push(status)
    })
    const small = `{"inputs":[],"x":[${'1.25,'.repeat(60_000)}1]}`
    while (done.length === 0) await restCall(serving.metricsPort, 'GET', '/livez')
    const { status } = await restCall(serving.httpPort, 'POST', path, { body: small })
    t.ok(status >= 400 && done.length < 5, `HTTP ${status} after ${done.length} large ones`)
    await Promise.all(large)
  })

  await t.test('silent connections to the port of metrics leave probes alone', async (t) => {
    for (let i = 0; i < 64; i++) {
      const socket = connectTcp(serving.metricsPort, '127.0.0.1')
      t.teardown(() => socket.destroy())
      await once(socket, 'connect')
    }
    t.equal((await restCall(serving.metricsPort, 'GET', '/livez')).status, 200)
  })
})

async function openSession(t: Test, { grpcPort }: Serving): Promise<ClientHttp2Session> {
  const session = connect(`http://127.0.0.1:${grpcPort}`)
  // To be cut off is what an attacker expects.
  session.on('error', () => {})
  t.teardown(() => session.destroy())
  await once(session, 'connect')
  return session
}

/** Begins a call: what comes of it, and how it ends, is left alone. */
function call(session: ClientHttp2Session, path: string): ClientHttp2Stream {
  const stream = session.request(
    {
      ':method': 'POST',
      ':path': `/${path}`,
      'content-type': 'application/grpc',
      'grpc-encoding': 'gzip',
    },
    { endStream: false },
  )
  stream.on('error', () => {})
  stream.resume()
  return stream
}

/** Asks for probes, one after the other, while something goes on. */
async function probesDuring({ metricsPort }: Serving, work: () => Promise<void>) {
  const startedMs = performance.now()
  const ends: unknown[] = []
  const working = work().finally(() => ends.push(true))
  let count = 0
  let longestMs = 0
  while (ends.length === 0) {
    const beganMs = performance.now()
    const { status } = await restCall(metricsPort, 'GET', '/livez')
    if (status !== 200) throw new Error(`a probe got HTTP ${status}`)
    count += 1
    longestMs = Math.max(longestMs, Math.round(performance.now() - beganMs))
  }
  await working
  return { count, longestMs, wholeMs: Math.round(performance.now() - startedMs) }
}

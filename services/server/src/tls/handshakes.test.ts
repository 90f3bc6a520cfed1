import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { systemClock } from '@tutti/chassis'
import { createManualClock, until } from '@tutti/chassis/testing'
import { openTestServer } from '@tutti/grpc/testing'
import { InferenceClient } from '@tutti/protocol/client'
import { startRestServer } from '@tutti/rest'
import { createTlsFolder, ScriptedBackend } from '@tutti/serving/testing'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { startMetricsServer } from '../metrics-server.ts'

t.setTimeout(120_000)

const REQUEST = { modelName: 'm', inputs: [] }

async function openSilent(t: Test, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.resume()
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** A connection whose handshake is over on both sides: then the server sends a session. */
async function openThrough(t: Test, port: number, ca: string): Promise<Socket> {
  const socket = connectTls({ port, host: '127.0.0.1', ca, ALPNProtocols: ['h2', 'http/1.1'] })
  t.teardown(() => socket.destroy())
  socket.resume()
  await once(socket, 'session')
  return socket
}

async function infer(address: string, ca: string): Promise<void> {
  const client = new InferenceClient({ address, tls: { ca } })
  try {
    await client.infer(REQUEST)
  } finally {
    client.close()
  }
}

await t.test('1,000 silent connections keep no client out', async (t) => {
  const { ca, files } = await createTlsFolder(t.testdir())
  const served = await openTestServer(t, { m: {} }, { tls: files('grpc'), maxConnections: 256 })
  const { server, address } = served
  const kept = new InferenceClient({ address, tls: { ca } })
  t.teardown(() => kept.close())
  let left = 0
  for (let i = 0; i < 1000; i++) {
    const socket = await openSilent(t, server.port)
    left += 1
    socket.once('close', () => {
      left -= 1
    })
    if (i % 50 === 0) await Promise.all([kept.infer(REQUEST), infer(address, ca)])
  }
  await Promise.all([kept.infer(REQUEST), infer(address, ca)])
  // A quarter of 256; each client that came through has ended one more.
  await until('those over a quarter are ended', () => left <= 64)
  t.ok(left >= 62, `${left} are left`)
})

await t.test('a handshake that does not end in time is ended, slow or silent', async (t) => {
  const { ca, files } = await createTlsFolder(t.testdir())
  const clock = createManualClock({ epochMs: Date.now() })
  const address = { address: '127.0.0.1', port: 0 }
  const backend = new ScriptedBackend({ m: {} })
  const metrics = { contentType: 'text/plain', render: async () => 'x 1\n' }
  const { server: grpc } = await openTestServer(t, { m: {} }, { tls: files('grpc'), clock })
  const rest = await startRestServer({ ...address, backend, clock, tls: files('http') })
  t.teardown(() => rest.close())
  const scrapes = await startMetricsServer({ ...address, metrics, clock, tls: files('metrics') })
  t.teardown(() => scrapes.close())
  for (const { port } of [grpc, rest, scrapes]) {
    const done = await openThrough(t, port, ca)
    const silent = await openSilent(t, port)
    const slow = await openSilent(t, port)
    const closed = [once(silent, 'close'), once(slow, 'close')]
    clock.advance(6000)
    slow.write(Buffer.from([0x16, 0x03, 0x01]))
    // Both connections are known to the server when a third one is through.
    const third = await openThrough(t, port, ca)
    t.equal(silent.destroyed || slow.destroyed, false)
    clock.advance(10_001)
    await Promise.all(closed)
    t.equal(done.destroyed || third.destroyed, false, 'those that are through stay')
  }
})

await t.test('a server closes at once while handshakes are open', async (t) => {
  const { files } = await createTlsFolder(t.testdir())
  const address = { address: '127.0.0.1', port: 0, clock: systemClock }
  const backend = new ScriptedBackend({ m: {} })
  const metrics = { contentType: 'text/plain', render: async () => 'x 1\n' }
  const { server: grpc } = await openTestServer(t, { m: {} }, { tls: files('grpc') })
  const servers = [
    grpc,
    await startRestServer({ ...address, backend, tls: files('http') }),
    await startMetricsServer({ ...address, metrics, tls: files('metrics') }),
  ]
  for (const server of servers) {
    const silent = await openSilent(t, server.port)
    const ended = once(silent, 'close')
    const beganAt = performance.now()
    await server.close()
    await ended
    t.ok(performance.now() - beganAt < 5000)
  }
})

await t.test('whatever comes in the place of a ClientHello does no harm', async (t) => {
  const { ca, files } = await createTlsFolder(t.testdir())
  const served = await openTestServer(t, { m: {} }, { tls: files('grpc'), maxConnections: 64 })
  const { server, address } = served
  const hello = fc.constantFrom<number[]>(
    [],
    [0x16, 0x03, 0x01, 0x40, 0x00],
    [0x16, 0x03, 0x01, 0x00, 0x05, 0x01, 0x00, 0x00, 0x01, 0x00],
    [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28],
    [...Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')],
    [...Buffer.from('GET / HTTP/1.1\r\n\r\n')],
  )
  const act = fc.record({
    start: hello,
    bytes: fc.uint8Array({ maxLength: 600 }),
    end: fc.constantFrom('wait', 'end', 'reset'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 12 }), async (acts) => {
      for (const { start, bytes, end } of acts) {
        const socket = await openSilent(t, server.port)
        socket.write(Buffer.concat([Buffer.from(start), bytes]))
        if (end === 'end') socket.end()
        if (end === 'reset') socket.resetAndDestroy()
      }
      await infer(address, ca)
    }),
    { numRuns: 40 },
  )
})

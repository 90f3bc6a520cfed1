import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { get, type RequestOptions } from 'node:https'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { createLogger, silentLogger } from '@tutti/chassis'
import { createTestAuthority, startFaultProxy, until } from '@tutti/chassis/testing'
import { openTestServer } from '@tutti/grpc/testing'
import { InferenceClient } from '@tutti/protocol/client'
import { startRestServer } from '@tutti/rest'
import type { TlsFiles } from '@tutti/serving'
import {
  createTlsFolder,
  type ModelScript,
  response,
  ScriptedBackend,
} from '@tutti/serving/testing'
import t, { type Test } from 'tap'
import { startMetricsServer } from '../metrics-server.ts'

// Many keys, signatures and bytes: long on a machine that is busy.
t.setTimeout(120_000)

const REQUEST = { modelName: 'm', inputs: [] }

type ClientTls = NonNullable<ConstructorParameters<typeof InferenceClient>[0]['tls']>

function openClient(t: Test, address: string, tls?: ClientTls) {
  const client = new InferenceClient({ address, ...(tls && { tls }) })
  t.teardown(() => client.close())
  return client
}

/** The names of the lines that were logged. */
function createLines() {
  const lines: string[] = []
  const write = (line: string) => lines.push(String(JSON.parse(line).message))
  return { lines, log: createLogger({ level: 'info', name: 'test', destination: { write } }) }
}

async function openSocket(t: Test, port: number, o: ConnectionOptions): Promise<TLSSocket> {
  const socket = connect({ port, host: '127.0.0.1', ...o })
  t.teardown(() => socket.destroy())
  await once(socket, 'secureConnect')
  return socket
}

function getStatus(port: number, path: string, o: RequestOptions): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = get({ port, host: '127.0.0.1', path, agent: false, ...o }, (answer) => {
      answer.resume()
      answer.once('end', () => resolve(answer.statusCode))
    })
    asked.once('error', reject)
  })
}

await t.test('gRPC over TLS answers clients that trust it, and no others', async (t) => {
  const folder = t.testdir()
  const { ca, files } = await createTlsFolder(folder)
  const stranger = await createTestAuthority(folder, 'stranger')
  const { server, address } = await openTestServer(t, { m: {} }, { tls: files('grpc') })
  t.match(await openClient(t, address, { ca }).infer(REQUEST), { modelName: 'm' })
  const wrongCa = openClient(t, address, { ca: readFileSync(stranger.caFile, 'utf8') })
  await t.rejects(wrongCa.infer(REQUEST), { code: 'UNAVAILABLE' })
  await t.rejects(openClient(t, address).infer(REQUEST), { code: 'UNAVAILABLE' }, 'without TLS')
  const h2 = await openSocket(t, server.port, { ca, ALPNProtocols: ['h2', 'http/1.1'] })
  t.equal(h2.alpnProtocol, 'h2')
  const others: readonly ConnectionOptions[] = [
    { ALPNProtocols: ['http/1.1'] },
    { ALPNProtocols: ['h2'], minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1' },
  ]
  for (const o of others) await t.rejects(openSocket(t, server.port, { ca, ...o }))
  const silent = await openSocket(t, server.port, { ca })
  silent.resume()
  await once(silent, 'close')
})

await t.test('gRPC over mutual TLS answers clients of the root only', async (t) => {
  const folder = t.testdir()
  const { ca, mutualFiles, client } = await createTlsFolder(folder)
  const stranger = await createTestAuthority(folder, 'stranger')
  const files = await stranger.issue('intruder')
  const intruder = { cert: readFileSync(files.cert, 'utf8'), key: readFileSync(files.key, 'utf8') }
  const { address } = await openTestServer(t, { m: {} }, { tls: mutualFiles('grpc') })
  const known = openClient(t, address, { ca, ...(await client('alice')) })
  t.match(await known.infer(REQUEST), { modelName: 'm' })
  await t.rejects(openClient(t, address, { ca }).infer(REQUEST), { code: 'UNAVAILABLE' })
  const refused = openClient(t, address, { ca, ...intruder })
  await t.rejects(refused.infer(REQUEST), { code: 'UNAVAILABLE' })
})

await t.test('much data goes both ways at once', async (t) => {
  const { ca, files } = await createTlsFolder(t.testdir())
  const { address } = await openTestServer(t, { m: {} }, { tls: files('grpc') })
  const client = openClient(t, address, { ca })
  const data = new Uint8Array(4 * 1024 * 1024).fill(7)
  const inputs = [{ name: 'x', datatype: 'UINT8', shape: [data.length], data }] as const
  const calls = Array.from({ length: 4 }, () => client.infer({ modelName: 'm', inputs }))
  for (const { outputs } of await Promise.all(calls)) {
    t.ok(outputs[0] && Buffer.compare(outputs[0].data, data) === 0)
  }
})

await t.test('a drain answers what has begun, and what is on its way', async (t) => {
  const { ca, files } = await createTlsFolder(t.testdir())
  const arrived = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  let count = 0
  const script: ModelScript = async function* (request) {
    count += 1
    if (count === 1) arrived.resolve()
    else released.resolve()
    await released.promise
    yield response(request, [])
  }
  const { server } = await openTestServer(t, { m: { script } }, { tls: files('grpc') })
  const proxy = await startFaultProxy({ port: server.port })
  t.teardown(() => proxy.close())
  const client = openClient(t, `127.0.0.1:${proxy.port}`, { ca })
  const first = client.infer(REQUEST)
  await arrived.promise
  proxy.delay(200)
  const drained = server.drain({ timeoutMs: 10_000 })
  const second = client.infer(REQUEST)
  for (const answer of [first, second]) t.match(await answer, { modelName: 'm' })
  await t.rejects(client.infer(REQUEST), { code: 'UNAVAILABLE' })
  t.equal(await drained, true)
})

await t.test('REST and metrics over TLS', async (t) => {
  const { ca, files, mutualFiles, client } = await createTlsFolder(t.testdir())
  const address = { address: '127.0.0.1', port: 0 }
  const backend = new ScriptedBackend({ m: {} })
  const metrics = { contentType: 'text/plain', render: async () => 'x 1\n' }
  const servers = [
    [await startRestServer({ ...address, backend, tls: files('http') }), false],
    [await startRestServer({ ...address, backend, tls: mutualFiles('http') }), true],
    [await startMetricsServer({ ...address, metrics, tls: files('metrics') }), false],
    [await startMetricsServer({ ...address, metrics, tls: mutualFiles('metrics') }), true],
  ] as const
  const alice = await client('alice')
  for (const [server, isMutual] of servers) {
    t.teardown(() => server.close())
    const { port } = server
    t.equal(await getStatus(port, '/v2/health/live', { ca, ...alice }), 200)
    const anonymous = getStatus(port, '/v2/health/live', { ca })
    if (isMutual) await t.rejects(anonymous, 'no client certificate')
    else t.equal(await anonymous, 200)
    await t.rejects(getStatus(port, '/v2/health/live', { ...alice }), 'the server is not trusted')
    await t.rejects(fetch(`http://127.0.0.1:${port}/v2/health/live`), 'without TLS')
    const http1 = { ca, ...alice, ALPNProtocols: ['h2', 'http/1.1'] }
    t.equal((await openSocket(t, port, http1)).alpnProtocol, 'http/1.1')
    const old = { ca, ...alice, minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1' } as const
    await t.rejects(openSocket(t, port, old), 'too old')
  }
})

await t.test('certificates change under load without a failed call', async (t) => {
  const { ca, files, renew } = await createTlsFolder(t.testdir())
  const { lines, log } = createLines()
  const { server, address } = await openTestServer(t, { m: {} }, { tls: files('grpc'), log })
  const kept = openClient(t, address, { ca })
  const serials = new Set<string>()
  const over = new AbortController()
  let calls = 0
  const load = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const client = new InferenceClient({ address, tls: { ca } })
      await Promise.all([client.infer(REQUEST), kept.infer(REQUEST)])
      client.close()
      calls += 2
      const socket = await openSocket(t, server.port, { ca, ALPNProtocols: ['h2'] })
      serials.add(socket.getPeerCertificate().serialNumber)
      socket.destroy()
    }
  }
  const loads = [load(), load(), load()]
  for (let change = 1; change <= 3; change++) {
    await renew()
    await until(
      'it is taken',
      () => lines.filter((l) => l === 'certificates changed').length === change,
    )
    const known = serials.size
    await until('new connections see it', () => serials.size > known || serials.size > change)
  }
  over.abort()
  await Promise.all(loads)
  t.equal(serials.size, 4)
  t.ok(calls > 20, `${calls} calls`)
})

await t.test('a pair that does not fit is logged once, and the one before stays', async (t) => {
  const folder = t.testdir()
  const { ca, caFile, files, renew } = await createTlsFolder(folder)
  const { key } = await (await createTestAuthority(folder, 'other')).issue('alien')
  const { lines, log } = createLines()
  const tls: TlsFiles = files('http')
  const backend = new ScriptedBackend({ m: {} })
  const server = await startRestServer({ address: '127.0.0.1', port: 0, backend, tls, log })
  t.teardown(() => server.close())
  const serial = async (): Promise<string> =>
    (await openSocket(t, server.port, { ca })).getPeerCertificate().serialNumber
  const first = await serial()
  await renew({ key })
  const complaint = 'certificates cannot be used, those before stay'
  await until('it is told', () => lines.includes(complaint))
  t.equal(await serial(), first)
  await renew({ root: caFile })
  await until('the next is taken', () => lines.includes('certificates changed'))
  t.not(await serial(), first)
  t.equal(lines.filter((line) => line === complaint).length, 1)
})

await t.test('another root keeps out the clients of the former, also with a session', async (t) => {
  const folder = t.testdir()
  const { ca, mutualFiles, client, renew } = await createTlsFolder(folder)
  const next = await createTestAuthority(folder, 'next')
  const { lines, log } = createLines()
  const tls = mutualFiles('grpc')
  const { server, address } = await openTestServer(t, { m: {} }, { tls, log })
  const alice = await client('alice')
  const open = openClient(t, address, { ca, ...alice })
  await open.infer(REQUEST)
  const h2 = { ca, ...alice, ALPNProtocols: ['h2'] }
  const before = await openSocket(t, server.port, h2)
  // The settings come behind what the server gives to resume with.
  await once(before, 'data')
  const session = before.getSession()
  await renew({ root: next.caFile })
  await until('it is taken', () => lines.includes('certificates changed'))
  t.match(await open.infer(REQUEST), { modelName: 'm' }, 'open connections stay')
  await t.rejects(openClient(t, address, { ca, ...alice }).infer(REQUEST), { code: 'UNAVAILABLE' })
  const again = connect({
    port: server.port,
    host: '127.0.0.1',
    ...h2,
    ...(session && { session }),
  })
  t.teardown(() => again.destroy())
  let isReused = false
  again.once('secureConnect', () => {
    isReused = again.isSessionReused()
  })
  again.on('error', () => {})
  again.resume()
  // With TLS 1.3 a client is through before the server has looked at its certificate.
  await once(again, 'close')
  t.equal(isReused, false)
})

await t.test('no session of a client with a certificate is resumed, it may expire', async (t) => {
  const { ca, files, mutualFiles, client } = await createTlsFolder(t.testdir())
  const alice = await client('alice')
  for (const [tls, isResumed] of [
    [mutualFiles('grpc'), false],
    [files('grpc'), true],
  ] as const) {
    const { server } = await openTestServer(t, { m: {} }, { tls })
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const versions = { minVersion: version, maxVersion: version }
      const o = { ca, ...alice, ALPNProtocols: ['h2'], ...versions }
      const first = await openSocket(t, server.port, o)
      await once(first, 'data')
      const session = first.getSession()
      const second = await openSocket(t, server.port, { ...o, ...(session && { session }) })
      t.equal(second.isSessionReused(), isResumed, version)
    }
  }
})

await t.test('a server that cannot listen leaves nothing behind', async (t) => {
  const { files } = await createTlsFolder(t.testdir())
  const { server } = await openTestServer(t, { m: {} })
  const o = { tls: files('grpc'), port: server.port }
  await t.rejects(openTestServer(t, { m: {} }, o), { code: 'INVALID_ARGUMENT' })
  const metrics = { contentType: 'text/plain', render: async () => '' }
  const taken = { address: '127.0.0.1', port: server.port, metrics, tls: files('metrics') }
  await t.rejects(startMetricsServer({ ...taken, log: silentLogger }), { code: 'INVALID_ARGUMENT' })
})

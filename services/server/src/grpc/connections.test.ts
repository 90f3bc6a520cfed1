import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { startFaultProxy } from '@tutti/chassis/testing'
import { InferenceClient } from '@tutti/protocol'
import t from 'tap'
import { type ModelScript, openTestServer, response } from '../testing/index.ts'

await t.test('the last answer before a close is whole', async (t) => {
  const data = new Uint8Array(4 * 1024 * 1024)
  const clients = 2
  const waiting = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  let started = 0
  const script: ModelScript = async function* (request) {
    started += 1
    if (started === clients) waiting.resolve()
    await released.promise
    yield response(request, [{ name: 'y', datatype: 'UINT8', shape: [data.length], data }])
  }
  const { server, address } = await openTestServer(t, { m: { script } })
  const answers = Array.from({ length: clients }, () => {
    const client = new InferenceClient({ address })
    t.teardown(() => client.close())
    return client.infer({ modelName: 'm', inputs: [] })
  })
  await waiting.promise
  const closed = server.drain({ timeoutMs: 60_000 }).then(() => server.close())
  released.resolve()
  for (const answer of answers) {
    t.equal((await answer).outputs[0]?.data.byteLength, data.byteLength)
  }
  await closed
})

await t.test('a call that is on its way when the server begins to drain is answered', async (t) => {
  const { server } = await openTestServer(t, { m: {} })
  const proxy = await startFaultProxy({ port: server.port })
  t.teardown(() => proxy.close())
  const client = new InferenceClient({ address: `127.0.0.1:${proxy.port}` })
  t.teardown(() => client.close())
  await client.infer({ modelName: 'm', inputs: [] })
  proxy.delay(200)
  const drained = server.drain({ timeoutMs: 10_000 })
  t.match(await client.infer({ modelName: 'm', inputs: [] }), { modelName: 'm' })
  t.equal(await drained, true)
  await t.rejects(client.infer({ modelName: 'm', inputs: [] }), { code: 'UNAVAILABLE' })
})

await t.test('a stream that is on its way when the server begins to drain is ended', async (t) => {
  const { server } = await openTestServer(t, { m: {} })
  const proxy = await startFaultProxy({ port: server.port })
  t.teardown(() => proxy.close())
  const client = new InferenceClient({ address: `127.0.0.1:${proxy.port}` })
  t.teardown(() => client.close())
  await client.infer({ modelName: 'm', inputs: [] })
  proxy.delay(200)
  const drained = server.drain({ timeoutMs: 10_000 })
  const responses = client.openStream().responses()
  await t.rejects(responses.next(), {
    code: 'UNAVAILABLE',
    reason: 'SERVER_STOPPING',
  })
  t.equal(await drained, true)
})

await t.test('a client that answers no ping is dropped, one that does stays', async (t) => {
  const { server, client } = await openTestServer(t, { m: {} }, { keepaliveMs: 50 })
  await client.infer({ modelName: 'm', inputs: [] })
  const silent = connect(server.port, '127.0.0.1')
  t.teardown(() => silent.destroy())
  silent.on('error', () => {})
  silent.resume()
  // The preface and empty settings, and then nothing more.
  silent.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  silent.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]))
  await once(silent, 'close')
  await sleep(200)
  t.match(await client.infer({ modelName: 'm', inputs: [] }), { modelName: 'm' })
})

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createManualClock } from '@tutti/chassis/testing'
import { openTestServer } from '@tutti/grpc/testing'
import { startRestServer } from '@tutti/rest'
import { createRestBackend, openRaw, response } from '@tutti/rest/testing'
import { response as modelResponse } from '@tutti/serving/testing'
import t, { type Test } from 'tap'

const LIVE = 'GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n'
const BODY = '{"inputs":[]}'
const INFER = `POST /v2/models/echo/infer HTTP/1.1\r\nhost: x\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`
const OK = 'HTTP/1.1 200'

/** A REST server whose model answers when it is told to. */
async function serveHeld(
  t: Test,
  o: { readonly maxConnections: number; readonly maxConnectionsPerAddress?: number },
) {
  const released = Promise.withResolvers<void>()
  let asked = 0
  const backend = createRestBackend({
    infer: async function* () {
      asked += 1
      await released.promise
      yield response([])
    },
  })
  const clock = createManualClock()
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0, clock, ...o })
  t.teardown(() => server.close())
  const ask = async (text: string) => {
    const client = await openRaw(server.port)
    t.teardown(() => client.socket.destroy())
    client.write(text)
    return client
  }
  return { port: server.port, clock, ask, release: released.resolve, asked: () => asked }
}

await t.test('silent connections and half requests keep no client out', async (t) => {
  const { ask, clock } = await serveHeld(t, { maxConnections: 8 })
  const mine = await ask(LIVE)
  await mine.until(OK)
  for (let round = 0; round < 5; round++) {
    for (let i = 0; i < 7; i++) await ask(i % 2 === 0 ? '' : INFER.slice(0, -5))
    clock.advance(5000)
    mine.write(LIVE)
    const next = await ask(LIVE)
    await next.until(OK)
  }
  t.ok(mine.socket.writable, 'one that is used stays')
  t.equal(mine.soFar().split(OK).length - 1, 6)
})

await t.test('a connection with a request in work stays, the new one ends', async (t) => {
  const { ask, release, asked, clock } = await serveHeld(t, { maxConnections: 2 })
  const busy = [await ask(INFER), await ask(INFER)]
  while (asked() < 2) await new Promise((resolve) => setImmediate(resolve))
  clock.advance(60_000)
  t.equal(await (await ask(LIVE)).all, '')
  release()
  for (const client of busy) await client.until(OK)
  clock.advance(60)
  const next = await ask(LIVE)
  await next.until(OK)
  t.equal(await busy[0]?.all.then((text) => text.includes(OK)), true, 'one of them ends now')
})

await t.test('an address has its own bound where a flag says so', async (t) => {
  const { port, ask, clock } = await serveHeld(t, {
    maxConnections: 8,
    maxConnectionsPerAddress: 2,
  })
  const other = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' })
  t.teardown(() => other.destroy())
  await once(other, 'connect')
  const first = await ask('')
  for (let i = 0; i < 6; i++) {
    clock.advance(60)
    await (await ask(LIVE)).until(OK)
  }
  t.equal(await first.all, '')
  other.write(LIVE)
  t.match(String(await once(other, 'data')), OK)
})

await t.test('gRPC connections with calls that only wait keep nobody out', async (t) => {
  const released = Promise.withResolvers<void>()
  const started = Promise.withResolvers<void>()
  const { client, server } = await openTestServer(
    t,
    {
      m: {
        script: async function* (request) {
          started.resolve()
          await released.promise
          yield modelResponse(request, [])
        },
      },
    },
    { maxConnections: 3 },
  )
  const answer = client.infer({ modelName: 'm', inputs: [] })
  await started.promise
  const silent: Socket[] = []
  for (let i = 0; i < 10; i++) {
    const socket = connect(server.port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    socket.on('error', () => {})
    socket.resume()
    silent.push(socket)
    await once(socket, 'connect')
    await new Promise((resolve) => setTimeout(resolve, 60))
  }
  const [oldest] = silent
  if (oldest?.closed === false) await once(oldest, 'close')
  released.resolve()
  t.match(await answer, { modelName: 'm' }, 'the request in work is answered')
})

import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { createManualClock } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { endIfStuck } from './end-if-stuck.ts'

const LARGE = Buffer.alloc(2 ** 24)

/** A socket of a server, and the client at its other end, which reads nothing yet. */
async function openPair(t: Test): Promise<readonly [Socket, Socket]> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  const client = connect(port, '127.0.0.1')
  const [socket] = await once(server, 'connection')
  for (const one of [socket, client]) one.on('error', () => {})
  t.teardown(() => {
    for (const one of [socket, client]) one.destroy()
    server.close()
  })
  return [socket, client]
}

await t.test('a socket that takes nothing for 10 s ends', async (t) => {
  const clock = createManualClock()
  const [socket] = await openPair(t)
  socket.write(LARGE)
  endIfStuck({ socket, clock })
  clock.advance(9999)
  t.notOk(socket.destroyed)
  clock.advance(1)
  t.ok(socket.destroyed)
})

await t.test('a socket whose client reads goes on', async (t) => {
  const clock = createManualClock()
  const [socket, client] = await openPair(t)
  const written = new Promise((resolve) => socket.write(LARGE, resolve))
  endIfStuck({ socket, clock })
  client.resume()
  await written
  // As much is left as before, of what came later.
  client.pause()
  socket.write(LARGE)
  clock.advance(10_000)
  t.notOk(socket.destroyed)
})

await t.test('however many of its calls were cut off, a socket is watched once', async (t) => {
  const clock = createManualClock()
  const [socket, client] = await openPair(t)
  const listeners = socket.listenerCount('close')
  const cutOff = async (): Promise<void> => {
    client.pause()
    const written = new Promise((resolve) => socket.write(LARGE, resolve))
    for (let i = 0; i < 100; i += 1) endIfStuck({ socket, clock })
    t.equal(clock.pending, 1)
    t.equal(socket.listenerCount('close'), listeners + 1)
    client.resume()
    await written
    clock.advance(10_000)
    t.equal(clock.pending, 0)
    t.equal(socket.listenerCount('close'), listeners)
  }
  await cutOff()
  await cutOff()
})

import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { startFaultProxy } from './fault-proxy.ts'

/** An echo server behind a relay. */
async function startEcho(t: Test) {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.pipe(socket)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const proxy = await startFaultProxy({ port: address.port })
  t.teardown(async () => {
    await proxy.close()
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const open = async () => {
    const socket = connect(proxy.port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    await once(socket, 'connect')
    return socket
  }
  return { proxy, open }
}

async function echo(socket: Socket, text: string): Promise<string> {
  socket.write(text)
  const [data] = await once(socket, 'data')
  return String(data)
}

await t.test('data and ends pass in both directions', async (t) => {
  const { proxy, open } = await startEcho(t)
  const socket = await open()
  t.equal(await echo(socket, 'hello'), 'hello')
  t.equal(proxy.connections, 1)
  socket.end()
  await once(socket, 'close')
})

await t.test('a stalled relay passes nothing until it resumes', async (t) => {
  const { proxy, open } = await startEcho(t)
  const socket = await open()
  await echo(socket, 'a')
  proxy.stall()
  let isOpen = false
  const answer = echo(socket, 'b').then((text) => {
    t.equal(isOpen, true)
    return text
  })
  await echo(await (await startEcho(t)).open(), 'a whole round trip elsewhere')
  isOpen = true
  proxy.resume()
  t.equal(await answer, 'b')
})

await t.test('delayed data keeps its order', async (t) => {
  const { proxy, open } = await startEcho(t)
  proxy.delay(2)
  const socket = await open()
  const words = Array.from({ length: 50 }, (_, at) => `${at} `)
  let got = ''
  for (const word of words) socket.write(word)
  socket.end()
  socket.on('data', (data) => {
    got += String(data)
  })
  await once(socket, 'end')
  t.equal(got, words.join(''))
})

await t.test('a cut resets what is open, and new connections work', async (t) => {
  const { proxy, open } = await startEcho(t)
  const socket = await open()
  await echo(socket, 'a')
  const failed = once(socket, 'error')
  proxy.cut()
  const [error] = await failed.catch((reason: unknown) => [reason])
  t.match(error, { code: 'ECONNRESET' })
  t.equal(await echo(await open(), 'b'), 'b')
})

await t.test('a refusing relay resets new connections until it accepts', async (t) => {
  const { proxy, open } = await startEcho(t)
  proxy.refuse()
  const refused = connect(proxy.port, '127.0.0.1')
  refused.on('error', () => {})
  await once(refused, 'close').catch(() => {})
  proxy.accept()
  t.equal(await echo(await open(), 'x'), 'x')
})

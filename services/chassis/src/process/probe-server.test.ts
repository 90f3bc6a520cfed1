import { once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { createProbeServer } from './probe-server.ts'

async function start(t: Test, maxConnections?: number) {
  const server = createProbeServer(
    (_request, response) => void response.end('ok'),
    maxConnections === undefined ? {} : { maxConnections },
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a listening TCP server has this kind of address
  return { server, port: (server.address() as AddressInfo).port }
}

async function open(t: Test, port: number, address?: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', ...(address && { localAddress: address }) })
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

function countOf(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error ? reject(error) : resolve(count)))
  })
}

/** A probe as the kubelet sends it: on a connection of its own. */
async function probe(port: number): Promise<number> {
  const got = await fetch(`http://127.0.0.1:${port}/livez`, { headers: { connection: 'close' } })
  await got.text()
  return got.status
}

await t.test('silent connections of one address or of many keep no probe out', async (t) => {
  const { server, port } = await start(t)
  for (let i = 0; i < 1100; i++) await open(t, port, `127.0.0.${1 + (i % 50)}`)
  for (let i = 0; i < 3; i++) t.equal(await probe(port), 200)
  t.ok((await countOf(server)) <= 1024)
})

await t.test('the oldest connection ends for a new one, whatever it does', async (t) => {
  const { port } = await start(t, 3)
  const sockets: Socket[] = []
  for (let i = 0; i < 3; i++) {
    const socket = await open(t, port)
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    await once(socket, 'data')
    sockets.push(socket)
  }
  const [first, second] = sockets
  const ended = first && once(first, 'close')
  await open(t, port)
  await ended
  second?.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  t.match(String(second && (await once(second, 'data'))), 'ok', 'the others go on')
})

await t.test('whatever clients do with their connections, probes are answered', async (t) => {
  const { server, port } = await start(t, 4)
  const act = fc.constantFrom(
    '',
    'GET /',
    'GET / HTTP/1.1\r\nhost: x\r\n',
    'GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(5),
    'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n',
    '\u0000\u0001',
    'leave',
  )
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 12 }), async (acts) => {
      for (const bytes of acts) {
        const socket = await open(t, port)
        if (bytes === 'leave') socket.destroy()
        else socket.write(bytes)
      }
      return (await probe(port)) === 200 && (await countOf(server)) <= 5
    }),
    { numRuns: 30 },
  )
})

import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { connect, createServer as createTcpServer, type Server } from 'node:net'
import { text } from 'node:stream/consumers'
import { until } from '@tutti/chassis/testing'
import type { KubeError } from '@tutti/kube'
import { takeForwards } from '@tutti/kube/testing'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { toPieces } from './forward-messages.ts'
import { forwardPort } from './forward-port.ts'

async function listen(t: Test, server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const address = server.address()
  return typeof address === 'object' ? (address?.port ?? 0) : 0
}

/** Gives back what comes, and ends when the other end does. */
async function openEcho(t: Test): Promise<number> {
  const server = createTcpServer({ allowHalfOpen: false }, (socket) => void socket.pipe(socket))
  return await listen(t, server)
}

function forwardFrom(
  apiPort: number,
  port: number,
  credentials: () => Promise<object>,
  refresh = (): void => {},
) {
  const server = new URL(`http://127.0.0.1:${apiPort}/prefix/`)
  const access = { server, credentials, refresh }
  const common = { namespace: 'shop', pod: 'tutti-router-x', timeoutMs: 200, userAgent: 'test/1' }
  return forwardPort({ access, port, ...common })
}

await t.test('bytes of any size go through, over several connections', async (t) => {
  const seen: unknown[] = []
  const api = createServer().on('upgrade', ({ headers }) => {
    seen.push([headers.authorization, headers['user-agent']])
  })
  const asked = takeForwards(api, { 8001: await openEcho(t) })
  const port = await listen(t, api)
  const authorization = 'Bearer abc'
  const forward = await forwardFrom(port, 8001, async () => ({ authorization }))
  t.equal(asked.length, 1, 'the API server is asked before there is a connection')
  const sent = [3_000_000, 0, 70_000].map((size) => Buffer.alloc(size, 'abcdefg'))
  await Promise.all(
    sent.map(async (bytes) => {
      const socket = connect(forward.port, '127.0.0.1')
      const parts: Buffer[] = []
      let size = 0
      socket.write(bytes)
      if (bytes.byteLength === 0) socket.end()
      for await (const part of socket) {
        parts.push(part)
        size += Buffer.byteLength(part)
        if (size === bytes.byteLength) break
      }
      t.ok(Buffer.concat(parts).equals(bytes), `${bytes.byteLength} bytes`)
    }),
  )
  t.same(
    new Set(asked),
    new Set(['/prefix/api/v1/namespaces/shop/pods/tutti-router-x/portforward']),
  )
  t.same(
    seen,
    sent.map(() => [authorization, 'test/1']),
  )
  const open = connect(forward.port, '127.0.0.1')
  await once(open, 'connect')
  await forward.close()
  await t.rejects(Promise.all([once(open, 'close'), text(connect(forward.port, '127.0.0.1'))]), {
    code: 'ECONNREFUSED',
  })
})

await t.test('what the pod or the API server says is the reason', async (t) => {
  const api = createServer()
  takeForwards(api, {})
  const forward = await forwardFrom(await listen(t, api), 8001, async () => ({}))
  t.teardown(() => forward.close())
  await text(connect(forward.port, '127.0.0.1')).catch(() => {})
  t.equal(forward.failure, 'port 8001: connection refused')

  const message = 'pods "x" is forbidden: User "u" cannot get resource "pods/portforward"'
  type Refused = Pick<KubeError, 'status'> & { readonly message: string | RegExp }
  const refusals: [(response: ServerResponse) => unknown, Refused][] = [
    [
      (response) => {
        response.writeHead(403, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ kind: 'Status', code: 403, message }))
      },
      { status: 403, message },
    ],
    [
      (response) => response.writeHead(502).end('<html>'),
      { status: 502, message: /portforward.*: HTTP 502: <html>$/ },
    ],
    [() => {}, { status: 0, message: /portforward.*timed out/ }],
  ]
  for (const [answer, wanted] of refusals) {
    const refusing = createServer((_, response) => answer(response))
    const port = await listen(t, refusing)
    await t.rejects(
      forwardFrom(port, 8001, async () => ({})),
      wanted,
    )
    refusing.closeAllConnections()
  }
  const nowhere = forwardFrom(1, 8001, async () => ({}))
  await t.rejects(nowhere, { status: 0, reason: 'NoConnection', message: /ECONNREFUSED/ })
  const without = forwardFrom(1, 8001, () => Promise.reject(new Error('no plugin')))
  await t.rejects(without, { reason: 'NoCredentials', message: /no credentials: no plugin/ })
})

await t.test('credentials that are refused are read again, once', async (t) => {
  const echo = await openEcho(t)
  let accepted = 'Bearer new'
  let refreshed = 0
  const credentials = async () => ({ authorization: refreshed === 0 ? 'Bearer old' : 'Bearer new' })
  const sockets = createServer()
  takeForwards(sockets, { 8001: echo })
  const api = createServer().on('upgrade', (request, socket, head) => {
    if (request.headers.authorization === accepted) {
      sockets.emit('upgrade', request, socket, head)
      return
    }
    socket.end('HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
  })
  const port = await listen(t, api)
  const refresh = (): void => void (refreshed += 1)
  await (await forwardFrom(port, 8001, credentials, refresh)).close()
  t.equal(refreshed, 1)
  accepted = 'none'
  await t.rejects(forwardFrom(port, 8001, credentials, refresh), { status: 401, message: /401/ })
  t.equal(refreshed, 2)
})

await t.test('no connection is made after the port was closed', async (t) => {
  const api = createServer()
  const asked = takeForwards(api, { 8001: await openEcho(t) })
  const later = Promise.withResolvers<object>()
  const waiting = Promise.withResolvers<void>()
  let questions = 0
  const forward = await forwardFrom(await listen(t, api), 8001, async () => {
    questions += 1
    if (questions === 1) return {}
    waiting.resolve()
    return await later.promise
  })
  const sockets = [connect(forward.port, '127.0.0.1'), connect(forward.port, '127.0.0.1')]
  for (const socket of sockets) socket.on('error', () => {})
  await waiting.promise
  const closed = Promise.all(sockets.map(async (socket) => await once(socket, 'close')))
  await forward.close()
  await closed
  later.resolve({})
  await until('the connection is given up', () => forward.failure?.includes('is closed') === true)
  t.equal(asked.length, 1)
})

await t.test('each channel begins with the port, however its messages are cut', async (t) => {
  const cuts = fc.array(fc.nat(6), { maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 40 }), cuts, async (bytes, cuts) => {
      const content = Buffer.concat([Buffer.of(0x41, 0x1f), bytes])
      const messages: Buffer[] = []
      let at = 0
      for (const cut of [...cuts, content.byteLength]) {
        messages.push(Buffer.concat([Buffer.of(0), content.subarray(at, (at += cut))]))
      }
      messages.push(Buffer.of(1, 0x41, 0x1f), Buffer.of(7, 1, 2, 3), Buffer.of(1), Buffer.alloc(0))
      const out: Buffer[] = []
      for await (const piece of toPieces(from(messages))) out.push(piece)
      return Buffer.concat(out).equals(bytes)
    }),
  )
  t.end()
})

async function* from(messages: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* messages
}

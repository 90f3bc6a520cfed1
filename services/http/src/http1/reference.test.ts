import { deepStrictEqual as deepEqual, strictEqual as equal } from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, METHODS, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { env } from 'node:process'
import * as fc from 'fast-check'
import t from 'tap'
import type { Exchange } from './exchange.ts'
import {
  answerText,
  type Scope,
  type SeenRequest,
  send,
  startHttp1,
} from './testing/http1-server.ts'
import { CUTS, cut, MUTATED_REQUESTS, VALID_REQUESTS } from './testing/random-requests.ts'

const NUM_RUNS = Number(env['TUTTI_HTTP1_RUNS'] ?? 300)

/** Starts our server, which notes the requests that it gets. */
async function startOurs(scope: Scope) {
  const seen: SeenRequest[] = []
  const { port } = await startHttp1(scope, (exchange: Exchange) => {
    const { method, target, headers, rawHeaders, isHttp10 } = exchange.head
    const request = { method, target, headers, rawHeaders, isHttp10, body: '', isWhole: false }
    seen.push(request)
    exchange.read({
      data: (piece) => {
        request.body += piece.toString('latin1')
      },
      end: () => {
        request.isWhole = true
        answerText(exchange, '')
      },
      left: () => {},
    })
  })
  return { port, take: () => seen.splice(0) }
}

/** Starts a server of node:http, which notes the same. */
async function startNode(scope: Scope) {
  const seen: SeenRequest[] = []
  const note = (incoming: IncomingMessage): SeenRequest => {
    const { method = '', url: target = '', headers, rawHeaders, httpVersion } = incoming
    const isHttp10 = httpVersion === '1.0'
    const request = { method, target, headers, rawHeaders, isHttp10, body: '', isWhole: false }
    seen.push(request)
    return request
  }
  const serve = (incoming: IncomingMessage, answer: ServerResponse): void => {
    const request = note(incoming)
    incoming.on('data', (piece: Buffer) => {
      request.body += piece.toString('latin1')
    })
    incoming.on('error', () => {})
    incoming.on('end', () => {
      request.isWhole = true
      answer.end()
    })
  }
  const server = createServer({ requireHostHeader: false, maxHeaderSize: 16_384 }, serve)
  server.maxHeadersCount = 0
  server.on('checkContinue', serve)
  server.on('checkExpectation', serve)
  server.on('connect', (incoming, socket) => {
    note(incoming)
    socket.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  scope.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return { port: (server.address() as AddressInfo).port, take: () => seen.splice(0) }
}

const LLHTTP_METHODS = new Set(METHODS)

await t.test('what is accepted, node:http accepts, with the same meaning', async (t) => {
  const ours = await startOurs(t)
  const node = await startNode(t)
  let accepted = 0
  await fc.assert(
    fc.asyncProperty(MUTATED_REQUESTS, CUTS, async (text, cuts) => {
      const pieces = cut(text, cuts)
      await Promise.all([send(ours.port, pieces), send(node.port, pieces)])
      const got = ours.take()
      const want = node.take()
      for (const [i, request] of got.entries()) {
        // The one difference: node:http refuses methods that it does not know, and our handler answers them with 405.
        if (!LLHTTP_METHODS.has(request.method)) return
        const { body, isWhole, ...head } = request
        const { body: wantBody = '', isWhole: isWhole2, ...wantHead } = want[i] ?? {}
        deepEqual(head, wantHead)
        // A tunnel has no body for node:http.
        if (isWhole && head.method !== 'CONNECT') deepEqual([isWhole, body], [isWhole2, wantBody])
        accepted += 1
        // Without a listener for upgrades, node:http loses what came with the request that asks for one.
        if (request.rawHeaders.some((text) => text.toLowerCase() === 'upgrade')) return
      }
    }),
    { numRuns: NUM_RUNS },
  )
  t.ok(accepted > NUM_RUNS / 4, `accepted ${accepted}`)
})

await t.test('requests that HTTP/1.1 allows are accepted, however they are cut', async (t) => {
  const ours = await startOurs(t)
  const node = await startNode(t)
  await fc.assert(
    fc.asyncProperty(VALID_REQUESTS, CUTS, async (requests, cuts) => {
      const pieces = cut(requests.flat().join(''), cuts)
      await Promise.all([send(ours.port, pieces), send(node.port, pieces)])
      const got = ours.take()
      equal(got.length, requests.length)
      deepEqual(got, node.take())
    }),
    { numRuns: NUM_RUNS },
  )
})

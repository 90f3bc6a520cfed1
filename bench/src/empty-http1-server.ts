import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { type Exchange, Http1Connections, ownCopy } from '@tutti/http'
import { listenLocally } from './listen-locally.ts'

/*
 * The least that a server of HTTP/1.1 can do, on our framing (`own`) or on node:http (`node`): it gives back the bytes that came.
 * Both do the same with each request, so what differs is the framing alone.
 */

const CONTENT_TYPE = 'application/octet-stream'
const TIMES = { headersTimeoutMs: 30_000, requestTimeoutMs: 300_000, keepAliveMs: 75_000 }

function serveOwn(): void {
  const server = createServer({ noDelay: true })
  const head = { status: 200, headers: { 'content-type': CONTENT_TYPE } }
  const handler = {
    request: (exchange: Exchange) => {
      const pieces: Buffer[] = []
      exchange.read({
        data: (piece) => void pieces.push(ownCopy(piece)),
        end: () => {
          const byteLength = pieces.reduce((sum, piece) => sum + piece.byteLength, 0)
          exchange.answer(head, pieces, byteLength)
        },
        left: () => {},
      })
    },
    refusal: () => ({ status: 400, headers: {}, parts: [] }),
  }
  void new Http1Connections(server, handler, TIMES)
  listenLocally(server, 'httpPort')
}

function serveNode(): void {
  const server = createHttpServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const body = pieces.length === 1 ? (pieces[0] ?? Buffer.alloc(0)) : Buffer.concat(pieces)
      response.writeHead(200, { 'content-type': CONTENT_TYPE, 'content-length': body.byteLength })
      response.end(body)
    })
  })
  listenLocally(server, 'httpPort')
}

if (process.argv[2] === 'own') serveOwn()
else serveNode()

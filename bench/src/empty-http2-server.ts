import { createServer as createHttp2Server } from 'node:http2'
import { createServer } from 'node:net'
import { encodeFields, openHttp2Connection, ownCopy } from '@tutti/http'
import { listenLocally } from './listen-locally.ts'

/*
 * The least that a server of gRPC's framing can do, on our HTTP/2 (`own`) or on node:http2 (`node`): it gives back the bytes that
 * came, with the headers and trailers of gRPC. Both do the same with each request, so what differs is the framing alone.
 */

const CONTENT_TYPE = 'application/grpc'

function serveOwn(): void {
  const headers = encodeFields([
    [':status', '200'],
    ['content-type', CONTENT_TYPE],
  ])
  const trailers = encodeFields([['grpc-status', '0']])
  const server = createServer({ noDelay: true }, (socket) => {
    openHttp2Connection(socket, {
      windowBytes: 2 ** 20,
      maxConcurrentStreams: 1024,
      maxHeaderListBytes: 16_384,
      resetBurst: 1024,
      resetsPerSecond: 100,
      handler: {
        stream: (stream) => {
          const pieces: Buffer[] = []
          stream.handler = {
            data: (piece) => void pieces.push(ownCopy(piece)),
            ended: () => {
              stream.respond(headers)
              stream.write(
                pieces.length === 1 ? (pieces[0] ?? Buffer.alloc(0)) : Buffer.concat(pieces),
              )
              stream.end(trailers)
            },
            closed: () => {},
          }
        },
      },
    })
  })
  listenLocally(server, 'grpcPort')
}

function serveNode(): void {
  const server = createHttp2Server({ settings: { maxConcurrentStreams: 1024 } })
  server.on('stream', (stream) => {
    const pieces: Buffer[] = []
    stream.on('data', (piece: Buffer) => pieces.push(piece))
    stream.on('end', () => {
      stream.respond({ ':status': 200, 'content-type': CONTENT_TYPE }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces))
    })
  })
  listenLocally(server, 'grpcPort')
}

if (process.argv[2] === 'own') serveOwn()
else serveNode()

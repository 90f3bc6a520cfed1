import { createServer as createHttp2Server } from 'node:http2'
import { createServer, type Server } from 'node:net'
import { encodeFields, openConnection, ownCopy } from '@tutti/http'

/*
 * The least that a server of gRPC's framing can do, on our HTTP/2 (`own`) or on node:http2 (`node`): it gives back the bytes that
 * came, with the headers and trailers of gRPC. Both do the same with each request, so what differs is the framing alone.
 */

const CONTENT_TYPE = 'application/grpc'

function listen(server: Server): void {
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    const grpcPort = typeof address === 'object' ? address?.port : undefined
    process.stdout.write(`${JSON.stringify({ message: 'server ready', grpcPort })}\n`)
  })
  process.once('SIGTERM', () => process.exit(0))
}

function serveOwn(): void {
  const headers = encodeFields([
    [':status', '200'],
    ['content-type', CONTENT_TYPE],
  ])
  const trailers = encodeFields([['grpc-status', '0']])
  const server = createServer({ noDelay: true }, (socket) => {
    openConnection(socket, {
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
  listen(server)
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
  listen(server)
}

if (process.argv[2] === 'own') serveOwn()
else serveNode()

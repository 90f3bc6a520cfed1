import { createServer } from 'node:http'
import { listenLocally } from './listen-locally.ts'

/*
 * The least that a REST server on node:http can do: it collects a body, parses it as JSON and answers it as JSON. What follows
 * the JSON goes back as it came. A process of its own, so that it shares no thread with what it is compared with.
 */

const LENGTH_HEADER = 'inference-header-content-length'

const server = createServer((request, response) => {
  const pieces: Buffer[] = []
  request.on('data', (piece: Buffer) => pieces.push(piece))
  request.on('end', () => {
    const body = Buffer.concat(pieces)
    const jsonBytes = Number(request.headers[LENGTH_HEADER] ?? body.byteLength)
    const json = JSON.stringify(JSON.parse(body.toString('utf8', 0, jsonBytes)))
    const answer = Buffer.concat([Buffer.from(json), body.subarray(jsonBytes)])
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': answer.byteLength,
    })
    response.end(answer)
  })
})
listenLocally(server, 'httpPort')

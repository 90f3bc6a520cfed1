import { once } from 'node:events'
import { connect } from 'node:http2'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { deflateSync } from 'node:zlib'
import { decodeStreamResponse, encodeInferRequest, inferenceServices } from '@tutti/protocol'
import t from 'tap'
import { MessageReader } from './call/message-reader.ts'
import { toFrame } from './methods/method.ts'
import { openTestServer } from './testing/test-server.ts'

await t.test('a stream that ends within a message ends with a reason', async (t) => {
  const { address, admission } = await openTestServer(t, { m: {} })
  const session = connect(`http://${address}`)
  t.teardown(() => session.destroy())
  const call = session.request({
    ':method': 'POST',
    ':path': inferenceServices().inference.ModelStreamInfer.path,
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  call.end(Buffer.from([0, 0, 0, 0, 9, 1]))
  call.resume()
  const [headers] = await once(call, 'response')
  t.equal(headers['grpc-status'], '3')
  t.equal(
    decodeURI(headers['grpc-message']),
    'stream has 6 bytes after its last message, want none',
  )
  await once(call, 'close')
  t.equal(admission.requests, 0)
})

/** How the frames of a stream come. */
const WAYS: readonly (readonly [string, (frames: readonly Buffer[]) => readonly Buffer[]])[] = [
  ['in one piece', (frames) => [Buffer.concat(frames)]],
  ['each in a piece', (frames) => frames],
  [
    'some in two pieces',
    (frames) =>
      frames.flatMap((frame, i) =>
        i % 5 === 3
          ? [frame.subarray(0, i % frame.byteLength), frame.subarray(i % frame.byteLength)]
          : [frame],
      ),
  ],
]

await t.test('compressed and plain requests of a stream keep their order', async (t) => {
  for (const [way, toPieces] of WAYS) {
    const { address, admission } = await openTestServer(t, { m: {} })
    const session = connect(`http://${address}`)
    t.teardown(() => session.destroy())
    const call = session.request({
      ':method': 'POST',
      ':path': inferenceServices().inference.ModelStreamInfer.path,
      'content-type': 'application/grpc',
      'grpc-encoding': 'deflate',
      te: 'trailers',
    })
    const ids = Array.from({ length: 200 }, (_, i) => String(i))
    const frames = ids.map((id, i) => {
      const message = encodeInferRequest({ modelName: 'm', id, inputs: [] })
      const frame = toFrame(i % 2 === 0 ? message : deflateSync(message))
      frame[0] = i % 2
      return frame
    })
    const answers: Buffer[] = []
    call.on('data', (piece: Buffer) => answers.push(piece))
    const ended = once(call, 'trailers')
    for (const piece of toPieces(frames)) {
      call.write(piece)
      await nextTurn()
    }
    call.end()
    const [trailers] = await ended
    t.equal(trailers['grpc-status'], '0', way)
    await once(call, 'close')
    const reader = new MessageReader(1000)
    reader.add(Buffer.concat(answers))
    const seen: (string | undefined)[] = []
    for (let framed = reader.next(); framed !== undefined; framed = reader.next()) {
      seen.push(decodeStreamResponse(framed.message).response?.id)
    }
    t.strictSame(seen, ids, way)
    t.equal(admission.bytes, 0)
  }
})

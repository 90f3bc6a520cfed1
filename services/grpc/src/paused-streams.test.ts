import { once } from 'node:events'
import { connect } from 'node:http2'
import { encodeInferRequest } from '@tutti/protocol'
import { Admission } from '@tutti/serving'
import { response } from '@tutti/serving/testing'
import t from 'tap'
import { openTestServer } from './testing/test-server.ts'

const WINDOW_BYTES = 2 ** 20
/** Requests of one stream that are worked on at the same time. */
const OUTSTANDING = 64

await t.test(
  'a stream that is to wait counts with what its client may send meanwhile',
  async (t) => {
    const released = Promise.withResolvers<void>()
    const { address, admission } = await openTestServer(
      t,
      {
        m: {
          script: async function* (request) {
            await released.promise
            yield response(request, [])
          },
        },
      },
      { admission: new Admission({ maxBytes: 2.5 * WINDOW_BYTES }), windowBytes: WINDOW_BYTES },
    )
    const session = connect(`http://${address}`)
    t.teardown(() => session.destroy())
    const message = Buffer.from(encodeInferRequest({ modelName: 'm', inputs: [] }))
    const frame = Buffer.concat([Buffer.of(0, 0, 0, 0, message.byteLength), message])
    const open = () => {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/inference.GRPCInferenceService/ModelStreamInfer',
        'content-type': 'application/grpc',
      })
      stream.on('error', () => {})
      stream.resume()
      stream.write(Buffer.concat(Array.from({ length: OUTSTANDING + 1 }, () => frame)))
      return stream
    }
    const statuses: unknown[] = []
    const streams = [open(), open()]
    while (admission.bytes < 2 * WINDOW_BYTES) await new Promise((resolve) => setImmediate(resolve))
    const third = open()
    const [headers] = await once(third, 'response')
    t.equal(headers['grpc-status'], '8', 'there is no room for a third window')
    released.resolve()
    for (const stream of streams) {
      stream.on('trailers', (trailers) => statuses.push(trailers['grpc-status']))
      stream.end()
      await once(stream, 'close')
    }
    t.same(statuses, ['0', '0'], 'the others go on and are answered')
    while (admission.bytes > 0) await new Promise((resolve) => setImmediate(resolve))
    t.equal(admission.requests, 0)
  },
)

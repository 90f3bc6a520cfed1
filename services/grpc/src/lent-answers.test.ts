import { once } from 'node:events'
import { connect, constants } from 'node:http2'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { encodeInferRequest } from '@tutti/protocol'
import type { InferenceClient } from '@tutti/protocol/client'
import { type ModelScript, response } from '@tutti/serving/testing'
import type { NamedTensor } from '@tutti/tensor'
import { Lender } from '@tutti/tensor/testing'
import * as fc from 'fast-check'
import t from 'tap'
import { openTestServer } from './testing/test-server.ts'

/** A model whose outputs have as many bytes as its inputs say, and are used for something else once they are given back. */
function lendingModel(lender: Lender): ModelScript {
  return async function* (request) {
    const outputs = request.inputs.map(({ name, data }) => toOutput(name, Buffer.from(data)))
    const { tensors, retain, end } = lender.lend(outputs)
    try {
      yield { ...response(request, tensors), retain }
    } finally {
      end()
    }
  }
}

function toOutput(name: string, asked: Buffer): NamedTensor {
  const size = asked.readInt32LE(0)
  const data = new Uint8Array(size).map((_, i) => (i + size) % 200)
  return { name, datatype: 'UINT8', shape: [size], data }
}

function ask(sizes: readonly number[]): Parameters<InferenceClient['infer']>[0] {
  const inputs = sizes.map((size, i) => {
    const data = new Uint8Array(Int32Array.of(size).buffer)
    return { name: `x${i}`, datatype: 'INT32' as const, shape: [1], data }
  })
  return { modelName: 'm', inputs }
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await nextTurn()
}

const size = fc.oneof(fc.nat({ max: 300 }), fc.integer({ min: 65_000, max: 400_000 }))

await t.test('answers of any sizes are sent from lent memory, and given back', async (t) => {
  const lender = new Lender()
  const served = await openTestServer(t, { m: { script: lendingModel(lender) } })
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(size, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 6 }),
      async (requests) => {
        const answers = await Promise.all(requests.map((sizes) => served.client.infer(ask(sizes))))
        const areRight = answers.every(({ outputs }, i) =>
          outputs.every(({ name, data }, j) => {
            const want = toOutput(name, Buffer.from(Int32Array.of(requests[i]?.[j] ?? 0).buffer))
            return Buffer.compare(data, want.data) === 0
          }),
        )
        await until(() => lender.open === 0)
        return areRight
      },
    ),
    { numRuns: 20 },
  )
  t.equal(served.admission.bytes, 0)
})

await t.test('an answer that is not taken is given back with its stream', async (t) => {
  for (const leave of ['reset', 'destroy'] as const) {
    const lender = new Lender()
    const served = await openTestServer(t, { m: { script: lendingModel(lender) } })
    const session = connect(`http://${served.address}`, { settings: { initialWindowSize: 40_000 } })
    session.on('error', () => {})
    t.teardown(() => session.destroy())
    await Promise.all([once(session, 'localSettings'), once(session, 'remoteSettings')])
    const stream = session.request({
      ':method': 'POST',
      ':path': '/inference.GRPCInferenceService/ModelInfer',
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    stream.on('error', () => {})
    const message = encodeInferRequest(ask([1_000_000, 500_000]))
    const header = Buffer.alloc(5)
    header.writeUInt32BE(message.byteLength, 1)
    stream.end(Buffer.concat([header, message]))
    await once(stream, 'response')
    for (let turn = 0; turn < 20; turn += 1) await nextTurn()
    t.equal(lender.open, 1, 'it waits for its client')
    if (leave === 'reset') stream.close(constants.NGHTTP2_CANCEL)
    else session.destroy()
    await until(() => lender.open === 0)
    await until(() => served.admission.bytes === 0)
    t.equal(served.admission.requests, 0, leave)
  }
})

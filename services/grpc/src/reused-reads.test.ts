import { setImmediate as nextTurn } from 'node:timers/promises'
import { Http2Connection } from '@tutti/http'
import { InferenceClient } from '@tutti/protocol/client'
import { createTlsFolder, response } from '@tutti/serving/testing'
import type { NamedTensor } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { openTestServer } from './testing/test-server.ts'

/** Where the reads of all connections of this process lay, and how many they were. */
const reads = { places: new Set<ArrayBufferLike>(), count: 0 }

/** Every read is overwritten as soon as it was taken, as a later one would. */
const receive = Reflect.get(Http2Connection.prototype, 'receive')
Http2Connection.prototype.receive = function poisoned(this: Http2Connection, chunk: Buffer) {
  Reflect.apply(receive, this, [chunk])
  chunk.fill(0xaa)
  reads.places.add(chunk.buffer)
  reads.count += 1
}

function tensor(size: number, seed: number): NamedTensor {
  const data = new Uint8Array(size).map((_, i) => (i * 7 + seed) % 251)
  return { name: 'x', datatype: 'UINT8', shape: [size], data }
}

async function askAndCompare(
  client: InferenceClient,
  size: number,
  seed: number,
): Promise<boolean> {
  const input = tensor(size, seed)
  const { outputs } = await client.infer({ modelName: 'm', inputs: [input] })
  return Buffer.compare(outputs[0]?.data ?? Buffer.alloc(0), input.data) === 0
}

const size = fc.oneof(fc.nat({ max: 2000 }), fc.nat({ max: 300_000 }), fc.nat({ max: 1_500_000 }))

await t.test('calls of several connections come through one read buffer unchanged', async (t) => {
  const { address, admission } = await openTestServer(t, { m: {} })
  const clients = Array.from({ length: 3 }, () => new InferenceClient({ address }))
  t.teardown(() => clients.forEach((client) => client.close()))
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(size, fc.nat({ max: 2 })), { minLength: 1, maxLength: 12 }),
      async (calls) => {
        const answers = calls.map(([bytes, at], seed) => {
          const client = clients[at] ?? new InferenceClient({ address })
          return askAndCompare(client, bytes, seed)
        })
        return (await Promise.all(answers)).every(Boolean)
      },
    ),
    { numRuns: 30 },
  )
  t.equal(admission.bytes, 0)
  t.equal(reads.places.size, 1, `${reads.count} reads lay in one place`)
})

await t.test('so do those over TLS', async (t) => {
  const tls = await createTlsFolder(t.testdir())
  const served = await openTestServer(t, { m: {} }, { tls: tls.files('grpc') })
  const address = `localhost:${served.server.port}`
  const client = new InferenceClient({ address, tls: { ca: tls.ca } })
  t.teardown(() => client.close())
  reads.places.clear()
  const sizes = [1, 500_000, 20, 1_000_000, 70_000, 3]
  t.same(
    await Promise.all(sizes.map((bytes, i) => askAndCompare(client, bytes, i))),
    sizes.map(() => true),
  )
  t.equal(reads.places.size, 1)
})

await t.test('small requests that wait keep none of the reads that they came with', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const held: Uint8Array[] = []
  const { client } = await openTestServer(t, {
    m: {
      script: async function* (request) {
        held.push(...request.inputs.map(({ data }) => data))
        await promise
        yield response(request, request.inputs)
      },
    },
  })
  const answers = Array.from({ length: 1000 }, (_, i) => askAndCompare(client, 500, i))
  while (held.length < answers.length) await nextTurn()
  const memories = new Set(held.map(({ buffer }) => buffer))
  const bytes = [...memories].reduce((sum, { byteLength }) => sum + byteLength, 0)
  resolve()
  t.ok((await Promise.all(answers)).every(Boolean))
  t.ok(bytes < 1000 * 1024, `1000 requests of 500 bytes keep ${bytes} bytes`)
})

import { gzipSync } from 'node:zlib'
import { Admission } from '@tutti/serving'
import * as fc from 'fast-check'
import t from 'tap'
import { startRestServer } from './rest-server.ts'
import { openRaw } from './testing/raw-http.ts'
import { createRestBackend } from './testing/rest-backend.ts'

const SEED = Buffer.from(
  '{"id":"r","parameters":{"p":1},"inputs":[{"name":"x","datatype":"FP32","shape":[1],' +
    '"parameters":{"binary_data_size":4}}],"outputs":[{"name":"x","parameters":{"binary_data":true}}]}abcd',
)

const edits = fc.array(
  fc.tuple(fc.nat(SEED.byteLength), fc.nat(6), fc.uint8Array({ maxLength: 6 })),
  { maxLength: 3 },
)
const mutated = edits.map((list) =>
  list.reduce<Buffer>(
    (bytes, [at, cut, put]) =>
      Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + cut)]),
    SEED,
  ),
)
const headers = fc.record(
  {
    'inference-header-content-length': fc.constantFrom(
      '0',
      '-1',
      'x',
      '1',
      String(SEED.byteLength - 4),
    ),
    'content-encoding': fc.constantFrom('gzip', 'deflate', 'br', 'identity'),
    'accept-encoding': fc.constantFrom('gzip', 'deflate;q=0.5, gzip;q=x', '*', ';;q'),
    'tutti-timeout-ms': fc.constantFrom('60000', 'x'),
    'content-type': fc.constantFrom('application/json', ';;;', ''),
    traceparent: fc.constantFrom('x', '00-0-0-0'),
  },
  { requiredKeys: [] },
)

await t.test(
  'any body and headers get an answer: a response or {"error"}, and nothing stays held',
  async (t) => {
    const admission = new Admission()
    const server = await startRestServer({
      backend: createRestBackend(),
      address: '127.0.0.1',
      port: 0,
      admission,
    })
    t.teardown(() => server.close())
    const url = `http://127.0.0.1:${server.port}/v2/models/echo/infer`
    const statuses = new Set<number>()
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(mutated, fc.uint8Array()),
        headers,
        fc.boolean(),
        async (body, sent, isZipped) => {
          const bytes = isZipped ? gzipSync(body) : body
          const got = await fetch(url, {
            method: 'POST',
            body: new Uint8Array(bytes),
            headers: sent,
          })
          statuses.add(got.status)
          if (got.status === 200) {
            await got.arrayBuffer()
            return
          }
          const answer: unknown = await got.json()
          if (!t.match(answer, { error: String })) throw new Error('no error text')
          if (got.status < 400) throw new Error(`status ${got.status}`)
        },
      ),
      { numRuns: 400 },
    )
    t.ok(statuses.has(400) && statuses.has(500), [...statuses].join(' '))
    const intact = await fetch(url, {
      method: 'POST',
      body: new Uint8Array(SEED),
      headers: { 'inference-header-content-length': String(SEED.byteLength - 4) },
    })
    t.equal(intact.status, 200)
    await intact.arrayBuffer()
    t.equal(await server.drain({ timeoutMs: 120_000 }), true)
    t.equal(admission.bytes, 0)
    t.equal(admission.requests, 0)
  },
)

await t.test('any bytes on a connection leave the server standing', async (t) => {
  const server = await startRestServer({
    backend: createRestBackend(),
    address: '127.0.0.1',
    port: 0,
  })
  t.teardown(() => server.close())
  const request = Buffer.concat([
    Buffer.from(
      `POST /v2/models/echo/infer HTTP/1.1\r\nhost: x\r\ninference-header-content-length: ${SEED.byteLength - 4}\r\ncontent-length: ${SEED.byteLength}\r\n\r\n`,
    ),
    SEED,
  ])
  const damage = fc.tuple(fc.nat(request.byteLength), fc.nat(20), fc.uint8Array({ maxLength: 20 }))
  await fc.assert(
    fc.asyncProperty(damage, async ([at, cut, put]) => {
      const client = await openRaw(server.port)
      client.write(Buffer.concat([request.subarray(0, at), put, request.subarray(at + cut)]))
      client.socket.end()
      await client.all
    }),
    { numRuns: 200 },
  )
  const alive = await fetch(`http://127.0.0.1:${server.port}/v2/health/live`)
  t.equal(alive.status, 200)
})

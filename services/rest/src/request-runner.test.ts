import { createLogger } from '@tutti/chassis'
import { failsWith } from '@tutti/serving/testing'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { startRestServer } from './rest-server.ts'
import { createRestBackend, type RestBackendOptions, response } from './testing/rest-backend.ts'

async function serve(t: Test, infer: RestBackendOptions['infer']) {
  const backend = createRestBackend(infer === undefined ? {} : { infer })
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0 })
  t.teardown(() => server.close())
  const post = (body: string) =>
    fetch(`http://127.0.0.1:${server.port}/v2/models/echo/infer`, { method: 'POST', body })
  return { server, post }
}

await t.test(
  'answers of every size come back to the byte, in one piece and in several',
  async (t) => {
    let data = new Uint8Array(0)
    const { post } = await serve(t, async function* () {
      yield response([{ name: 'y', datatype: 'UINT8', shape: [data.byteLength], data }])
    })
    // Around the size up to which an answer is one piece, too.
    const sizes = fc.oneof(
      fc.integer({ min: 0, max: 600 }),
      fc.integer({ min: 7900, max: 8300 }),
      fc.integer({ min: 0, max: 300_000 }),
    )
    const property = fc.asyncProperty(sizes, fc.nat(255), async (size, first) => {
      data = Uint8Array.from({ length: size }, (_, i) => (i + first) & 255)
      const answer = await post('{"inputs":[],"parameters":{"binary_data_output":true}}')
      const bytes = Buffer.from(await answer.arrayBuffer())
      const json = size === 0 ? bytes : bytes.subarray(0, -size)
      t.equal(answer.status, 200)
      t.equal(JSON.parse(json.toString()).outputs[0].parameters.binary_data_size, size)
      return bytes.subarray(json.byteLength).equals(data)
    })
    await fc.assert(property, { numRuns: 60 })
  },
)

await t.test('names that are no ASCII come back in one piece', async (t) => {
  const name = 'größe 大小 \u{1f600}'
  const { post } = await serve(t, async function* () {
    yield response([{ name, datatype: 'INT8', shape: [1], data: new Uint8Array([7]) }])
  })
  const answer = await (await post('{"inputs":[]}')).text()
  t.same(JSON.parse(answer).outputs, [{ name, datatype: 'INT8', shape: [1], data: [7] }])
})

await t.test(
  'requests end in any order; those that are left are told that the server stops',
  async (t) => {
    const order = fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6, 7])
    const property = fc.asyncProperty(order, async (ended) => {
      const going: (() => void)[] = []
      const allBegan = Promise.withResolvers<void>()
      const { server, post } = await serve(t, async function* () {
        const { promise, resolve } = Promise.withResolvers<void>()
        if (going.push(resolve) === 8) allBegan.resolve()
        await promise
        yield response([])
      })
      let answered = 0
      const areEnded = Promise.withResolvers<void>()
      const answers = Array.from({ length: 8 }, async () => {
        const answer = await post('{"inputs":[]}')
        await answer.text()
        answered += 1
        if (answered === ended.length) areEnded.resolve()
        return answer.status
      })
      await allBegan.promise
      for (const at of ended) going[at]?.()
      if (ended.length > 0) await areEnded.promise
      server.stopAccepting()
      const isDrained = await server.drain({ timeoutMs: ended.length === 8 ? 60_000 : 1 })
      const statuses = await Promise.all(answers)
      await server.close()
      t.equal(isDrained, ended.length === 8)
      t.equal(statuses.filter((status) => status === 503).length, 8 - ended.length)
      return statuses.filter((status) => status === 200).length === ended.length
    })
    await fc.assert(property, { numRuns: 10 })
  },
)

const odd = failsWith(new TypeError('odd'))

await t.test('a request that fails is logged with its id and its trace', async (t) => {
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const log = createLogger({ level: 'debug', name: 'test', destination })
  const backend = createRestBackend({ infer: odd })
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0, log })
  t.teardown(() => server.close())
  const traceId = '4'.repeat(32)
  const headers = { traceparent: `00-${traceId}-${'7'.repeat(16)}-01` }
  const post = async (path: string, body: string) => {
    const url = `http://127.0.0.1:${server.port}/v2/models/${path}`
    const answer = await fetch(url, { method: 'POST', body, headers })
    await answer.arrayBuffer()
  }
  await post('echo/infer', '{"id":"one","inputs":[]}')
  await post('echo/infer', '{"id":')
  await post('absent/infer', '{"id":"late","inputs":[]}')
  const failed = lines.map((line) => JSON.parse(line)).filter(({ path }) => path !== undefined)
  t.match(failed, [
    { level: 'error', request: 'one', traceId, path: '/v2/models/echo/infer' },
    { level: 'debug', request: undefined, traceId },
    { level: 'debug', request: undefined, traceId },
  ])
})

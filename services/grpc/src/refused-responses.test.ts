import { Admission } from '@tutti/serving'
import { response } from '@tutti/serving/testing'
import type { NamedTensor } from '@tutti/tensor'
import t from 'tap'
import { openTestServer } from './testing/test-server.ts'

await t.test('a model hears at once that its response was refused', async (t) => {
  const aborted = Promise.withResolvers<unknown>()
  const data = new Uint8Array(20_000)
  const large: NamedTensor = { name: 'y', datatype: 'UINT8', shape: [data.length], data }
  const { client, admission } = await openTestServer(
    t,
    {
      d: {
        isDecoupled: true,
        script: async function* (request, { signal }) {
          signal.addEventListener('abort', () => aborted.resolve(signal.reason), { once: true })
          yield response(request, [large], { final: false })
          await aborted.promise
        },
      },
    },
    { admission: new Admission({ maxBytes: 10_000 }) },
  )
  const stream = client.openStream()
  const responses = stream.responses()
  await stream.send({ modelName: 'd', id: 'r', inputs: [] })
  t.match(await responses.next(), { value: { errorMessage: /^server is overloaded/ } })
  t.match(await aborted.promise, { reason: 'OVERLOADED' })
  stream.end()
  t.equal((await responses.next()).done, true)
  t.equal(admission.requests, 0)
})

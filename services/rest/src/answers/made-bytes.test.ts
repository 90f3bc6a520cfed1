import { Admission } from '@tutti/serving'
import t from 'tap'
import { startRestServer } from '../rest-server.ts'
import { createRestBackend, response } from '../testing/rest-backend.ts'

function ones(count: number): string {
  const data = `${'1,'.repeat(count - 1)}1`
  return `{"inputs":[{"name":"x","datatype":"FP64","shape":[${count}],"data":[${data}]}]}`
}

await t.test('tensors of JSON and parameters count with their body', async (t) => {
  const admission = new Admission({ maxBytes: 2 ** 24 })
  const seen: number[] = []
  const backend = createRestBackend({
    infer: async function* (request) {
      seen.push(admission.bytes)
      yield response(request.inputs.slice(0, 0))
    },
  })
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0, admission })
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${server.port}/v2/models/echo/infer`
  const post = (body: string) => fetch(url, { method: 'POST', body })
  const parameter = `{"inputs":[],"parameters":{"p":"${'\u0100'.repeat(100_000)}"}}`
  // One on the loop, one on the thread.
  for (const text of [ones(100_000), ones(200_000), parameter]) {
    t.equal((await post(text)).status, 200)
    t.equal(admission.bytes, 0)
  }
  const [few = 0, many = 0, text = 0] = seen
  t.ok(few >= 10 * 100_000 && few < 11 * 100_000, `${few} bytes`)
  t.ok(many >= 10 * 200_000 && many < 11 * 200_000, `${many} bytes`)
  t.ok(text >= 4 * 100_000, `${text} bytes`)
  t.equal((await post(ones(500_000))).status, 503)
  t.equal(admission.bytes, 0)
})

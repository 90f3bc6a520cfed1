import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Admission } from '@tutti/serving'
import t, { type Test } from 'tap'
import { startRestServer } from '../rest-server.ts'
import { openRaw } from '../testing/raw-http.ts'
import { createRestBackend, response } from '../testing/rest-backend.ts'

/** More than the sockets of both sides hold. */
const ANSWER_BYTES = 32 * 1024 * 1024
const ASK = JSON.stringify({ inputs: [], parameters: { binary_data_output: true } })
const SMALL = JSON.stringify({ id: 'small', inputs: [] })

/** A server over a model that answers a few bytes with 32 MiB, and the request `small` with none. */
async function start(t: Test, maxBytes: number) {
  const data = new Uint8Array(ANSWER_BYTES)
  const y = { name: 'y', datatype: 'UINT8', shape: [ANSWER_BYTES], data } as const
  const backend = createRestBackend({
    infer: async function* (request) {
      yield response(request.context.id === 'small' ? [] : [y])
    },
  })
  const admission = new Admission({ maxBytes })
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0, admission })
  t.teardown(() => server.close())
  const infer = (body: string, headers: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${server.port}/v2/models/echo/infer`, {
      method: 'POST',
      headers: { 'accept-encoding': 'identity', ...headers },
      body,
    })
  return { admission, port: server.port, infer }
}

await t.test(
  'an answer that its client does not read is counted, and ends for the first client that needs its bytes',
  async (t) => {
    const { admission, port, infer } = await start(t, 1.5 * ANSWER_BYTES)
    const client = await openRaw(port)
    client.socket.pause()
    client.write(
      `POST /v2/models/echo/infer HTTP/1.1\r\nhost: x\r\ncontent-length: ${ASK.length}\r\n\r\n${ASK}`,
    )
    while (admission.bytes < ANSWER_BYTES) await nextTurn()
    t.equal((await infer(SMALL)).status, 200)
    const served = await infer(ASK)
    t.equal(served.status, 200)
    t.ok((await served.arrayBuffer()).byteLength > ANSWER_BYTES)
    client.socket.resume()
    if (!client.socket.closed) await once(client.socket, 'close')
    while (admission.bytes > 0) await nextTurn()
    t.equal(admission.requests, 0)
  },
)

await t.test('a compressed answer is counted as it is written', async (t) => {
  const { admission, port, infer } = await start(t, 1.5 * ANSWER_BYTES)
  const clients = await Promise.all([openRaw(port), openRaw(port)])
  for (const client of clients) {
    client.socket.pause()
    client.write(
      `POST /v2/models/echo/infer HTTP/1.1\r\nhost: x\r\naccept-encoding: gzip\r\ncontent-length: ${ASK.length}\r\n\r\n${ASK}`,
    )
    // While it is compressed all of it is there.
    while (admission.bytes < ANSWER_BYTES) await nextTurn()
    while (admission.bytes > ANSWER_BYTES / 2) await nextTurn()
  }
  t.equal((await infer(ASK, { 'accept-encoding': 'gzip' })).status, 200)
  for (const client of clients) client.socket.destroy()
})

import { setImmediate as nextTurn } from 'node:timers/promises'
import { ServeError } from '@tutti/errors'
import { Admission } from '@tutti/serving'
import t, { type Test } from 'tap'
import type { RestServerOptions } from './rest-options.ts'
import { startRestServer } from './rest-server.ts'
import { openRaw } from './testing/raw-http.ts'
import { createRestBackend } from './testing/rest-backend.ts'

const JSON_BODY = JSON.stringify({
  inputs: [{ name: 'x', datatype: 'FP32', shape: [1], data: [1] }],
})
const HEAD = 'POST /v2/models/echo/infer HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n'

async function start(t: Test, o: Partial<RestServerOptions>) {
  const backend = createRestBackend()
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0, ...o })
  t.teardown(() => server.close())
  return { url: `http://127.0.0.1:${server.port}`, port: server.port }
}

await t.test('bodies that have only begun take no place from others', async (t) => {
  const admission = new Admission({ maxRequests: 1 })
  const { url, port } = await start(t, { admission })
  const slow = await Promise.all(Array.from({ length: 20 }, () => openRaw(port)))
  for (const [i, client] of slow.entries()) client.write(HEAD + ' '.repeat(i))
  while (admission.bytes < (20 * 19) / 2) await nextTurn()
  const got = await fetch(`${url}/v2/models/echo/infer`, { method: 'POST', body: JSON_BODY })
  t.equal(got.status, 200)
  for (const { socket } of slow) socket.destroy()
})

function refuseAll(): never {
  throw new ServeError('UNAUTHENTICATED', 'want a token')
}

await t.test('a call that may reach nothing is refused as such by a full server', async (t) => {
  const admission = new Admission({ maxRequests: 1 })
  admission.open().enter()
  const { url } = await start(t, { admission, select: refuseAll })
  const got = await fetch(`${url}/v2/models/echo/infer`, { method: 'POST', body: JSON_BODY })
  t.equal(got.status, 401)
  t.equal(admission.requests, 1)
})

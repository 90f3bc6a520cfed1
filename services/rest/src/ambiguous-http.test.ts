import t from 'tap'
import { startRestServer } from './rest-server.ts'
import { openRaw } from './testing/raw-http.ts'
import { createRestBackend } from './testing/rest-backend.ts'

const SMUGGLED = 'GET /v2/smuggled HTTP/1.1\r\nhost: x\r\n\r\n'

/** Heads whose body two parsers would end at different places; behind each one stands a request of its own. */
const AMBIGUOUS: Readonly<Record<string, string>> = {
  'both lengths': `content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
  'both lengths, the other way round': `transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n`,
  'two content lengths': 'content-length: 2\r\ncontent-length: 0\r\n\r\n{}',
  'a list of content lengths': 'content-length: 2, 2\r\n\r\n{}',
  'a content length with a sign': 'content-length: +2\r\n\r\n{}',
  'a content length in hexadecimal': 'content-length: 0x2\r\n\r\n{}',
  'chunked, but not last': 'transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n',
  'chunked twice': 'transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
  'an unknown transfer encoding': 'transfer-encoding: xchunked\r\n\r\n0\r\n\r\n',
  'a blank before the colon': 'transfer-encoding : chunked\r\n\r\n0\r\n\r\n',
  'a tab behind the transfer encoding': 'transfer-encoding: chunked\t\r\n\r\n0\r\n\r\n',
  'a tab before the content length': 'content-length:\t2\r\n\r\n{}',
  'a folded header': 'x: y\r\n transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n{}',
  'a chunk size that lies': 'transfer-encoding: chunked\r\n\r\n2\r\n{}xx\r\n0\r\n\r\n',
  'a chunk size that is none': 'transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n',
  'a bare line feed': 'content-length: 2\n\n{}',
}

await t.test('an HTTP request that is ambiguous is refused with what follows it', async (t) => {
  const backend = createRestBackend()
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0 })
  t.teardown(() => server.close())
  for (const [what, rest] of Object.entries(AMBIGUOUS)) {
    const client = await openRaw(server.port)
    client.write(`POST /v2/models/echo/infer HTTP/1.1\r\nhost: x\r\n${rest}${SMUGGLED}`)
    const answer = await client.all
    t.match(answer, /^HTTP\/1\.1 400 /, what)
    t.equal(answer.split('HTTP/1.1 ').length, 2, `${what}: one answer`)
  }
  t.same(backend.requests, [], 'none of them reaches a model')
  const body = JSON.stringify({ inputs: [{ name: 'x', datatype: 'FP32', shape: [1], data: [1] }] })
  const url = `http://127.0.0.1:${server.port}/v2/models/echo/infer`
  t.equal((await fetch(url, { method: 'POST', body })).status, 200, 'the next one is served')
})

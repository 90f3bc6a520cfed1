import { type RestRoute, startRestServer, withDocument } from '@tutti/rest'
import { createRestBackend } from '@tutti/rest/testing'
import { MAX_CONTROL_BYTES, readHeaderRules } from '@tutti/serving'
import t, { type Test } from 'tap'

/** A call as somebody adds it: this record and nothing else. */
const ECHO: RestRoute = {
  method: 'POST',
  path: '/v2/echo/:word',
  group: 'logging',
  admission: 'control',
  document: { summary: 'Says it again', body: 'Object', answer: 'Object' },
  answer: async (call) => {
    const parts = [Buffer.from(call.parameters['word'] ?? ''), await call.body()]
    const byteLength = parts.reduce((sum, part) => sum + part.byteLength, 0)
    return { status: 200, headers: {}, parts, byteLength }
  },
}

async function serve(t: Test, routes: readonly RestRoute[], restricted: readonly string[] = []) {
  const backend = createRestBackend()
  const select = readHeaderRules({
    'http-header-forward-pattern': undefined,
    'grpc-header-forward-pattern': undefined,
    'http-restricted-api': restricted,
    'grpc-restricted-protocol': [],
  })('http', () => backend)
  const server = await startRestServer({ backend, select, routes, address: '127.0.0.1', port: 0 })
  t.teardown(() => server.close())
  return `http://127.0.0.1:${server.port}`
}

await t.test('a call that is added in one record is found everywhere', async (t) => {
  const url = await serve(t, withDocument([ECHO]), ['logging:key=secret'])
  const ask = (body: string, headers: Record<string, string> = { key: 'secret' }) =>
    fetch(`${url}/v2/echo/a`, { method: 'POST', body, headers })
  t.equal(await (await ask('b')).text(), 'ab')
  t.equal((await ask('b', {})).status, 403, 'its group is restricted')
  t.equal((await ask('b'.repeat(MAX_CONTROL_BYTES + 1))).status, 413, 'its class bounds the body')
  const wrong = await fetch(`${url}/v2/echo/a`)
  t.equal(wrong.status, 405)
  t.equal(wrong.headers.get('allow'), 'POST')
  const { paths } = JSON.parse(await (await fetch(`${url}/v2/openapi.json`)).text())
  t.match(paths['/v2/echo/{word}'], {
    parameters: [{ name: 'word' }],
    post: { summary: 'Says it again', requestBody: {} },
  })
})

await t.test('two calls of a path are two records', async (t) => {
  const reads: RestRoute = { ...ECHO, method: 'GET', document: 'none' }
  const url = await serve(t, withDocument([reads, ECHO]))
  t.equal(await (await fetch(`${url}/v2/echo/a`)).text(), 'a')
  const wrong = await fetch(`${url}/v2/echo/a`, { method: 'PUT' })
  t.equal(wrong.headers.get('allow'), 'GET, POST')
  const { paths } = JSON.parse(await (await fetch(`${url}/v2/openapi.json`)).text())
  t.same(Object.keys(paths['/v2/echo/{word}']).toSorted(), ['parameters', 'post'])
})

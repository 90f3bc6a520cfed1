import t from 'tap'
import { OPENAPI_SCHEMAS } from '../openapi-schemas.ts'
import { startRestServer } from '../rest-server.ts'
import { createRestBackend } from '../testing/rest-backend.ts'

await t.test('the document is served, and holds together', async (t) => {
  const backend = createRestBackend()
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0 })
  t.teardown(() => server.close())
  const got = await fetch(`http://127.0.0.1:${server.port}/v2/openapi.json`)
  t.equal(got.status, 200)
  t.equal(got.headers.get('content-type'), 'application/json')
  const text = await got.text()
  const { openapi, paths } = JSON.parse(text)
  t.equal(openapi, '3.1.0')
  t.match(paths['/v2/models/{model}/versions/{version}/infer'], {
    parameters: [{ name: 'model', in: 'path' }, { name: 'version' }],
    post: { requestBody: { content: { 'application/json': {} } } },
  })
  t.match(paths['/v2/models/{model}/generate_stream'].post.responses['200'].content, {
    'text/event-stream': {},
  })
  t.ok(Object.keys(paths).length > 20)
  t.notOk(Object.keys(paths).some((path) => path.includes('cudasharedmemory')))
  for (const [path, item] of Object.entries<{ parameters?: { name: string }[] }>(paths)) {
    const named = [...path.matchAll(/{(\w+)}/g)].map(([, name]) => name)
    t.same(
      (item.parameters ?? []).map(({ name }) => name),
      named,
      path,
    )
  }
  const used = new Set([...text.matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name))
  t.same(used, new Set(Object.keys(OPENAPI_SCHEMAS)))
})

import { ControlCalls, SERVER_IDENTITY } from '@tutti/serving'
import t from 'tap'
import { startRestServer } from '../rest-server.ts'
import { createRestBackend } from '../testing/rest-backend.ts'
import { operationsOf } from './openapi.ts'
import { OPENAPI_SCHEMAS } from './openapi-schemas.ts'
import { restRoutes } from './routes.ts'

const ROUTES = restRoutes({
  control: new ControlCalls({ backend: createRestBackend() }),
  identity: SERVER_IDENTITY,
})

await t.test('every route that is offered is documented, method by method', (t) => {
  const offered = ROUTES.filter(({ isRefused }) => isRefused !== true)
  t.ok(offered.length > 20)
  for (const { path, methods } of offered) {
    t.same(new Set(Object.keys(operationsOf(path) ?? {})), new Set(methods), path)
  }
  t.end()
})

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

import { createHash } from 'node:crypto'
import { Metadata } from '@grpc/grpc-js'
import { systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { openTestServer, type TestServer } from '@tutti/grpc/testing'
import { fromGrpcStatus } from '@tutti/protocol'
import { startRestServer } from '@tutti/rest'
import {
  AccessCounts,
  AccessLog,
  createEdgeSelector,
  type EdgeAccess,
  type EdgeRoute,
  EdgeRules,
} from '@tutti/serving'
import { ScriptedBackend } from '@tutti/serving/testing'
import { SharedRegions } from '@tutti/shared-memory'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'

const digest = (token: string): string => createHash('sha256').update(token).digest('hex')

/** The identities of a route that one token lets in. */
const tokenOf = (token: string) => [{ name: 'token', tokenSha256: digest(token) }]

const ROUTES: readonly EdgeRoute[] = [
  { hosts: ['open.example'], models: ['a'] },
  { hosts: ['closed.example', 'open.example'], models: ['b'], identities: tokenOf('secret') },
  { hosts: ['*.wild.example'], models: ['c'] },
]

/** A selector by routes that may change. */
function selectorOf(backend: ScriptedBackend, access: () => EdgeAccess) {
  const counts = new AccessCounts()
  const rules = new EdgeRules({ access, counts, clock: systemClock })
  return createEdgeSelector({ backend, rules, log: new AccessLog({ counts }) })
}

/** One by routes that stay; it takes headers. */
function selectBy(backend: ScriptedBackend, routes: readonly EdgeRoute[]) {
  const access = { routes }
  const select = selectorOf(backend, () => access)
  return (headers: Record<string, string>) => select({ headers, path: '/', socket: undefined })
}

function scripted(): ScriptedBackend {
  const backend = new ScriptedBackend({ a: {}, b: {}, c: {}, hidden: {} })
  backend.control = { load: async () => {}, unload: async () => {} }
  backend.index = ['a', 'b', 'c', 'hidden'].map((name) => ({
    name,
    version: '1',
    state: 'READY',
    reason: '',
  }))
  return backend
}

async function openRest(t: Test) {
  const backend = scripted()
  backend.regions = new SharedRegions()
  const access = { routes: ROUTES }
  const select = selectorOf(backend, () => access)
  const server = await startRestServer({ backend, select, address: '127.0.0.1', port: 0 })
  t.teardown(() => server.close())
  return async (path: string, headers: Record<string, string>, body?: string) => {
    // fetch sets the header Host itself.
    const { request } = await import('node:http')
    return await new Promise<{ status: number; headers: object; json: unknown }>(
      (resolve, reject) => {
        const method = body === undefined ? 'GET' : 'POST'
        const call = request(
          { host: '127.0.0.1', port: server.port, path, method, headers },
          (answer) => {
            const parts: Buffer[] = []
            answer.on('data', (part: Buffer) => parts.push(part))
            answer.on('end', () => {
              const text = Buffer.concat(parts).toString()
              const status = answer.statusCode ?? 0
              resolve({
                status,
                headers: answer.headers,
                json: text === '' ? undefined : JSON.parse(text),
              })
            })
          },
        )
        call.on('error', reject)
        call.end(body)
      },
    )
  }
}

await t.test('over REST a host leads to its models and to no others', async (t) => {
  const call = await openRest(t)
  const host = 'Open.Example:8443'
  t.equal((await call('/v2/models/a', { host })).status, 200)
  t.match(await call('/v2/models/hidden', { host }), {
    status: 404,
    json: { error: "Request for unknown model: 'hidden' is not found" },
  })
  t.match(await call('/v2/models/b', { host }), {
    status: 401,
    headers: { 'www-authenticate': 'Bearer', 'tutti-error-reason': 'UNAUTHENTICATED' },
  })
  const authorization = 'Bearer secret'
  t.equal((await call('/v2/models/b', { host, authorization })).status, 200)
  t.equal((await call('/v2/models/a', { host, authorization })).status, 200)
  t.equal((await call('/v2/models/a', { host, authorization: 'Bearer wrong' })).status, 401)
  t.same((await call('/v2/repository/index', { host, authorization }, '{}')).json, [
    { name: 'a', version: '1', state: 'READY' },
    { name: 'b', version: '1', state: 'READY' },
  ])
  t.equal((await call('/v2/models/c', { host: 'x.y.wild.example' })).status, 200)
  t.equal((await call('/v2/models/c', { host: 'wild.example' })).status, 404)
  t.equal((await call('/v2', { host: 'elsewhere.example' })).status, 404)
  t.equal((await call('/v2/models/hidden/ready', { host })).status, 400)
  t.equal((await call('/v2', { host: 'closed.example' })).status, 401)
})

await t.test('what steps take is not told to the outside', async (t) => {
  const select = selectBy(scripted(), ROUTES)
  t.throws(() => select({ host: 'open.example', 'tutti-steps': '1' }), {
    reason: 'ACCESS_DENIED',
    message: /'tutti-steps' is not taken from outside/,
  })
})

await t.test('over REST nothing can be loaded, unloaded or set from outside', async (t) => {
  const call = await openRest(t)
  const host = 'open.example'
  for (const path of ['/v2/repository/models/a/load', '/v2/repository/models/a/unload']) {
    t.match(await call(path, { host }, '{}'), {
      headers: { 'tutti-error-reason': 'MODEL_CONTROL_REFUSED' },
    })
  }
  for (const path of ['/v2/logging', '/v2/trace/setting']) {
    t.equal((await call(path, { host })).status, 501, path)
  }
  const region = await call('/v2/systemsharedmemory/unregister', { host }, '{}')
  t.equal(region.status, 501)
})

await t.test('health is about what the host leads to', async (t) => {
  const backend = scripted()
  backend.ready = false
  const broken = { hosts: ['broken.example'], models: ['a', 'absent'] }
  const select = selectBy(backend, [...ROUTES, broken])
  t.equal(select({ host: 'open.example' }).isReady(), true)
  t.equal(select({ host: 'broken.example' }).isReady(), false)
  backend.live = false
  t.equal(select({ host: 'open.example' }).isReady(), false)
})

await t.test('over gRPC a host leads to its models and to no others', async (t) => {
  let access: EdgeAccess = { routes: [] }
  const backend = scripted()
  const served = await openTestServer(t, {}, { select: selectorOf(backend, () => access) })
  await t.rejects(ready(served, 'a'), { code: 'NOT_FOUND' })
  // The authority of the client is the address.
  const hosts = ['127.0.0.1']
  const closed = { hosts, models: ['b'], identities: tokenOf('secret') }
  access = { routes: [{ hosts, models: ['a'] }, closed] }
  t.same(await ready(served, 'a'), { ready: true })
  t.same(await ready(served, 'hidden'), { ready: false })
  await t.rejects(ready(served, 'b'), { code: 'UNAUTHENTICATED' })
  t.same(await ready(served, 'b', 'secret'), { ready: true })
  await t.rejects(infer(served, 'hidden'), { message: /unknown model: 'hidden'/ })
  await t.rejects(infer(served, 'b'), { code: 'UNAUTHENTICATED' })
  await t.rejects(load(served), { message: /not allowed/ })
  access = { routes: [] }
  await t.rejects(ready(served, 'a'), { code: 'NOT_FOUND' })
})

function metadataOf(token: string | undefined): Metadata {
  const metadata = new Metadata()
  if (token !== undefined) metadata.set('authorization', `Bearer ${token}`)
  return metadata
}

function ready(served: TestServer, name: string, token?: string): Promise<object> {
  return new Promise((resolve, reject) => {
    served.client.objects.ModelReady({ name }, metadataOf(token), (error, answer) => {
      if (error !== null) reject(fromGrpcStatus(error))
      else resolve(answer ?? {})
    })
  })
}

function infer(served: TestServer, name: string): Promise<object> {
  return new Promise((resolve, reject) => {
    served.client.objects.ModelInfer({ model_name: name }, (error, answer) => {
      if (error !== null) reject(fromGrpcStatus(error))
      else resolve(answer ?? {})
    })
  })
}

function load(served: TestServer): Promise<object> {
  return new Promise((resolve, reject) => {
    served.client.objects.RepositoryModelLoad({ model_name: 'a' }, (error, answer) => {
      if (error !== null) reject(fromGrpcStatus(error))
      else resolve(answer ?? {})
    })
  })
}

await t.test(
  'whatever the routes, a model is reached by host and token of one of them alone',
  async () => {
    const host = fc.constantFrom('a.x', 'b.x', 'x', '*.x', '*.b.x', 'y')
    const token = fc.option(fc.constantFrom('one', 'two'), { nil: undefined })
    const route = fc.record({
      hosts: fc.uniqueArray(host, { minLength: 1, maxLength: 3 }),
      models: fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { minLength: 1 }),
      token,
    })
    const called = fc.constantFrom('a.x', 'b.x', 'c.b.x', 'x', 'y', 'z', '')
    fc.assert(
      fc.property(fc.array(route, { maxLength: 5 }), called, token, (written, name, brought) => {
        const routes = written.map(({ token: wanted, ...rest }) =>
          wanted === undefined ? rest : { ...rest, identities: tokenOf(wanted) },
        )
        const select = selectBy(scripted(), routes)
        const headers = {
          host: name,
          ...(brought !== undefined && { authorization: `Bearer ${brought}` }),
        }
        for (const model of ['a', 'b', 'c', 'hidden'] as const) {
          const mayReach = written.some(
            (one) =>
              one.models.some((known) => known === model) &&
              one.hosts.some((pattern) => matches(pattern, name)) &&
              (one.token === undefined || one.token === brought),
          )
          if (reaches(() => select(headers).resolve(model, '')) && !mayReach) return false
        }
        return true
      }),
    )
  },
)

function matches(pattern: string, name: string): boolean {
  return pattern.startsWith('*') ? name.endsWith(pattern.slice(1)) : pattern === name
}

function reaches(call: () => unknown): boolean {
  try {
    call()
    return true
  } catch (error) {
    if (error instanceof ServeError) return false
    throw error
  }
}

await t.test('headers of any kind end in a view or in a typed refusal', async () => {
  const select = selectBy(scripted(), ROUTES)
  fc.assert(
    fc.property(fc.string(), fc.string(), (host, authorization) => {
      reaches(() => select({ host, authorization }))
      reaches(() => select({ ':authority': host, authorization: `Bearer ${authorization}` }))
    }),
  )
})

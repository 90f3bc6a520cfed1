// needs: apiserver
import t from 'tap'
import type { ProxiedRequest } from './fault-rules.ts'
import { withoutKube } from './find-kube-binaries.ts'
import { startHttpFaultProxy } from './http-fault-proxy.ts'
import { type PlainClient, plainClient } from './plain-client.ts'
import type { ApiServer } from './start-api-server.ts'
import { startApiServer } from './start-api-server.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'

await t.test('a proxy before a real API server', { skip: withoutKube() }, async (t) => {
  const server: ApiServer = await startApiServer()
  t.teardown(() => server.stop())
  await server.plain.send('POST', '/api/v1/namespaces', { body: { metadata: { name: 'default' } } })
  const proxy = await startHttpFaultProxy(server)
  t.teardown(() => proxy.close())
  const client: PlainClient = plainClient({ url: proxy.url, ca: server.ca, token: server.token })
  t.teardown(() => client.close())
  const make = (name: string): Promise<unknown> => client.create(MAPS, { metadata: { name } })
  t.afterEach(() => proxy.clear())

  await t.test('writes are counted, with what was answered', async (t) => {
    const before = proxy.writes.length
    await make('counted')
    await client.send('POST', MAPS, { body: { metadata: { name: 'counted' } } })
    await client.send('POST', `${MAPS}?dryRun=All`, { body: { metadata: { name: 'dry' } } })
    await client.send('POST', '/apis/coordination.k8s.io/v1/namespaces/default/leases', {
      body: { metadata: { name: 'l' } },
    })
    await client.get(`${MAPS}/counted`)
    t.same(
      proxy.writes.slice(before).map(({ method, path, status }) => [method, path, status]),
      [
        ['POST', MAPS, 201],
        ['POST', MAPS, 409],
      ],
    )
    t.match(proxy.writes[before]?.body, /counted/)
  })

  await t.test('an answer is given instead, so often', async (t) => {
    const fault = { type: 'answer', status: 429, retryAfter: 7 } as const
    proxy.addRule({ method: 'POST', path: /configmaps$/, times: 2, fault })
    for (let i = 0; i < 2; i++) {
      const { status, body } = await client.send('POST', MAPS, {
        body: { metadata: { name: 'x' } },
      })
      t.equal(status, 429)
      t.match(body, { kind: 'Status', reason: 'TooManyRequests', code: 429 })
    }
    await make('x')
    const remove = proxy.addRule({ fault: { type: 'answer', status: 504, reason: 'Odd' } })
    t.match((await client.send('GET', MAPS)).body, { reason: 'Odd' })
    remove()
    t.equal((await client.send('GET', MAPS)).status, 200)
  })

  await t.test('a reset is not carried out, a lost answer is', async (t) => {
    proxy.addRule({ isWrite: true, times: 1, fault: { type: 'reset' } })
    await t.rejects(make('reset'), { code: 'ECONNRESET' })
    t.equal((await client.send('GET', `${MAPS}/reset`)).status, 404)
    proxy.addRule({ isWrite: true, times: 1, fault: { type: 'lose' } })
    await t.rejects(make('lost'), { code: 'ECONNRESET' })
    t.equal((await client.send('GET', `${MAPS}/lost`)).status, 200)
  })

  await t.test('a request waits for what it is told to', async (t) => {
    const gate = Promise.withResolvers<void>()
    proxy.addRule({ isWrite: true, times: 1, fault: { type: 'wait', until: gate.promise } })
    const made = make('waited')
    t.equal((await client.send('GET', `${MAPS}/waited`)).status, 404)
    gate.resolve()
    await made
  })

  await t.test('the test is called around the k-th write', async (t) => {
    const seen: string[] = []
    const look = async (when: string): Promise<void> => {
      const { status } = await server.plain.send('GET', `${MAPS}/second`)
      seen.push(`${when} ${status}`)
    }
    proxy.onWrite(2, { before: () => look('before'), after: () => look('after') })
    await make('first')
    t.same(seen, [])
    await make('second')
    t.same(seen, ['before 404', 'after 200'])
    await make('third')
    t.equal(seen.length, 2)
    const counted: string[] = []
    const after = ({ body }: ProxiedRequest): void => void counted.push(body)
    proxy.onWrite(2, { after }, ({ body }) => body.includes('of-two'))
    for (const name of ['one-of-two', 'another', 'two-of-two']) await make(name)
    t.match(counted, [/two-of-two/], 'some count')
    t.equal(counted.length, 1)
  })

  await t.test('connections are reset and refused', async (t) => {
    const came = Promise.withResolvers<void>()
    const when = (): boolean => {
      came.resolve()
      return true
    }
    proxy.addRule({ path: /dropped/, when, fault: { type: 'drop' } })
    const dropped = client.send('GET', `${MAPS}/dropped`)
    await came.promise
    proxy.refuse()
    await t.rejects(dropped, { code: 'ECONNRESET' })
    await t.rejects(client.get(MAPS), { code: 'ECONNRESET' })
    proxy.accept()
    await client.get(MAPS)
  })
})

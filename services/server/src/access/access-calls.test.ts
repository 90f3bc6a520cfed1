import { once } from 'node:events'
import { Metadata } from '@grpc/grpc-js'
import { until } from '@tutti/chassis/testing'
import { fromGrpcStatus } from '@tutti/protocol'
import type { InferenceClient } from '@tutti/protocol/client'
import { response } from '@tutti/serving/testing'
import t from 'tap'
import { bearer, INFER, openAccess as open, REST_INFER, rule } from '../testing/access-servers.ts'

await t.test('a call over the quota says when to come again, to each protocol', async (t) => {
  const quota = { requestsPerSecond: 1, burst: 2 }
  const { overGrpc, overRest, clock, backend } = await open(t, {
    identities: [rule('one', { quota }), rule('other', { quota })],
  })
  t.equal((await overGrpc('ModelInfer', INFER('a'), bearer('one'))).code, 'OK')
  t.equal((await overRest('/models/a/infer', bearer('one'), REST_INFER)).status, 200)
  const refused = await overGrpc('ModelInfer', INFER('a'), bearer('one'))
  t.match(refused, { code: 'RESOURCE_EXHAUSTED', error: { reason: 'QUOTA_EXCEEDED' } })
  t.equal(refused.pushback, '1000')
  const late = await overRest('/models/a/infer', bearer('one'), REST_INFER)
  t.equal(late.status, 429)
  t.equal(late.headers.get('retry-after'), '1')
  t.equal((await overRest('/models/a/infer', bearer('other'), REST_INFER)).status, 200)
  t.equal(backend.requests.length, 3)
  clock.advance(1000)
  t.equal((await overRest('/models/a', bearer('one'))).status, 200)
  t.equal((await overRest('/models/a', bearer('one'))).status, 429, 'other calls count too')
})

await t.test('every call counts, however it ends', async (t) => {
  const quota = { requestsPerSecond: 1, burst: 1 }
  const { overGrpc, overRest, clock } = await open(t, { identities: [rule('one', { quota })] })
  const token = bearer('one')
  const calls: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['about the server', () => overGrpc('ServerMetadata', {}, token)],
    ['about the server, over REST', () => overRest('', token)],
    ['of another model', () => overGrpc('ModelInfer', INFER('b'), token)],
    ['of another model, over REST', () => overRest('/models/b', token)],
    ['without a model', () => overGrpc('ModelInfer', INFER(''), token)],
    ['malformed', () => overRest('/models/a/infer', token, '{')],
    ['of nothing', () => overRest('/models/a/generate', token, '{}')],
    ['control', () => overRest('/repository/models/a/load', token, '{}')],
    ['control over gRPC', () => overGrpc('RepositoryModelLoad', { model_name: 'a' }, token)],
    ['the index', () => overRest('/repository/index', token, '')],
    ['inference', () => overRest('/models/a/infer', token, REST_INFER)],
  ]
  for (const [what, call] of calls) {
    await call()
    t.equal((await overRest('/models/a', token)).status, 429, what)
    clock.advance(1000)
    t.equal((await overRest('/models/a', token)).status, 200, 'and once')
    clock.advance(1000)
  }
})

await t.test('requests at the same time are bounded until they are answered', async (t) => {
  const held = Promise.withResolvers<void>()
  let arrived = 0
  const { overGrpc, overRest } = await open(t, {
    identities: [rule('one', { quota: { concurrentRequests: 2 } })],
    script: async function* (request) {
      arrived += 1
      await held.promise
      yield response(request, request.inputs)
    },
  })
  const first = [1, 2].map(() => overGrpc('ModelInfer', INFER('a'), bearer('one')))
  await until('both requests are in work', () => arrived === 2)
  t.equal((await overGrpc('ModelInfer', INFER('a'), bearer('one'))).code, 'RESOURCE_EXHAUSTED')
  t.equal((await overRest('/models/a/infer', bearer('one'), REST_INFER)).status, 429)
  held.resolve()
  t.match(await Promise.all(first), [{ code: 'OK' }, { code: 'OK' }])
  t.equal((await overRest('/models/a/infer', bearer('one'), REST_INFER)).status, 200)
  t.equal(arrived, 3)
})

await t.test('each request of a stream counts', async (t) => {
  const { client } = await open(t, {
    identities: [rule('one', { quota: { requestsPerSecond: 1, burst: 3 } })],
  })
  const metadata = new Metadata()
  metadata.set('authorization', bearer('one'))
  const stream = client.objects.ModelStreamInfer(metadata)
  const texts: string[] = []
  const ended = new Promise<void>((resolve, reject) => {
    stream.on('data', (answer: { error_message: string }) => texts.push(answer.error_message))
    stream.on('end', resolve)
    stream.on('error', reject)
  })
  for (const model of ['a', 'b', 'a', 'a', 'a']) stream.write(INFER(model))
  stream.end()
  await ended
  t.same(
    texts.map((text) => text.split(':', 1)[0]),
    ['', `identity 'one' may not call model 'b'`, '', 'quota of the caller', 'quota of the caller'],
  )
})

/** A stream of the identity `one`, with what comes on it. */
function openStream(client: InferenceClient) {
  const metadata = new Metadata()
  metadata.set('authorization', bearer('one'))
  const stream = client.objects.ModelStreamInfer(metadata)
  const texts: string[] = []
  const ended = Promise.withResolvers<string>()
  stream.on('data', (answer: { error_message: string }) => texts.push(answer.error_message))
  stream.on('end', () => ended.resolve('OK'))
  stream.on('error', (error) => ended.resolve(fromGrpcStatus(error as never).code))
  return { stream, texts, ended: ended.promise }
}

await t.test('a stream follows the rules: without its identity it ends', async (t) => {
  const { client, set, audited } = await open(t, {
    identities: [rule('one', { models: ['a', 'b'] })],
  })
  const { stream, texts, ended } = openStream(client)
  stream.write(INFER('b'))
  await until('it is answered', () => texts.length === 1)
  set([rule('one')])
  stream.write(INFER('b'))
  stream.write(INFER('a'))
  await until('both are answered', () => texts.length === 3)
  t.same(texts, ['', "identity 'one' may not call model 'b'", ''])
  set([rule('two')])
  stream.write(INFER('a'))
  t.equal(await ended, 'UNAUTHENTICATED')
  t.match(audited().at(-1), { message: 'call refused', reason: 'UNAUTHENTICATED' })
})

await t.test('a stream that only takes responses ends too', async (t) => {
  const held = Promise.withResolvers<void>()
  const { client, set, clock } = await open(t, {
    identities: [rule('one')],
    script: async function* (request) {
      yield response(request, request.inputs)
      await held.promise
    },
  })
  const { stream, ended } = openStream(client)
  t.teardown(() => held.resolve())
  stream.write(INFER('a'))
  await once(stream, 'data')
  set([])
  clock.advance(5000)
  t.equal(await ended, 'UNAUTHENTICATED')
})

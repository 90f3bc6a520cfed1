import { once } from 'node:events'
import { connect } from 'node:http2'
import { get } from 'node:https'
import { join } from 'node:path'
import { ServeError } from '@tutti/errors'
import { InferenceClient } from '@tutti/protocol/client'
import { createTlsFolder } from '@tutti/serving/testing'
import t from 'tap'
import { bearer, INFER, openAccess as open, REST_INFER, rule } from '../testing/access-servers.ts'

await t.test('each identity calls its models over both protocols, and no others', async (t) => {
  const { overGrpc, overRest } = await open(t, {
    identities: [
      rule('one'),
      rule('both', { models: ['a', 'b'] }),
      rule('all', { models: ['*'] }),
      rule('none', { models: ['absent'] }),
    ],
  })
  const OK = ['OK', 200] as const
  const DENIED = ['PERMISSION_DENIED', 403] as const
  const UNKNOWN = ['UNAUTHENTICATED', 401] as const
  for (const [who, ofA, ofB] of [
    ['one', OK, DENIED],
    ['both', OK, OK],
    ['all', OK, OK],
    ['none', DENIED, DENIED],
    ['stranger', UNKNOWN, UNKNOWN],
    [undefined, UNKNOWN, UNKNOWN],
  ] as const) {
    const token = who && bearer(who)
    for (const [model, [code, status]] of [
      ['a', ofA],
      ['b', ofB],
    ] as const) {
      const about = `${who} calls ${model}`
      const named = { name: model, version: '' }
      t.equal((await overGrpc('ModelInfer', INFER(model), token)).code, code, about)
      for (const method of [
        'ModelReady',
        'ModelMetadata',
        'ModelConfig',
        'ModelStatistics',
      ] as const)
        t.equal((await overGrpc(method, named, token)).code, code, `${about}: ${method}`)
      t.equal((await overRest(`/models/${model}/infer`, token, REST_INFER)).status, status, about)
      for (const path of ['', '/ready', '/config', '/stats'])
        t.equal((await overRest(`/models/${model}${path}`, token)).status, status, about + path)
    }
  }
})

await t.test('who proves nothing is told how, and health answers him', async (t) => {
  const { overGrpc, overRest } = await open(t, { identities: [rule('one')] })
  const refused = await overRest('/models/a')
  t.equal(refused.headers.get('www-authenticate'), 'Bearer')
  for (const path of ['/health/live', '/health/ready'])
    t.equal((await overRest(path)).status, 200, path)
  for (const method of ['ServerLive', 'ServerReady'] as const)
    t.equal((await overGrpc(method, {})).code, 'OK', method)
  for (const path of ['', '/models/stats', '/health/live/', '/health/ready?x', '/nothing'])
    t.not((await overRest(path)).status, 200, path)
  t.equal((await overGrpc('ServerMetadata', {})).code, 'UNAUTHENTICATED')
  t.equal((await overGrpc('ServerMetadata', {}, bearer('one'))).code, 'OK')
  for (const wrong of ['Basic one', 'Bearer', bearer('one').slice(0, -1), `${bearer('one')} x`])
    t.equal((await overRest('/models/a', wrong)).status, 401, wrong)
})

await t.test('lists show what the identity may call', async (t) => {
  const { overGrpc, overRest } = await open(t, {
    identities: [rule('one'), rule('all', { models: ['*'] })],
  })
  for (const [who, names] of [
    ['one', ['a']],
    ['all', ['a', 'b']],
  ] as const) {
    const { answer } = await overGrpc('RepositoryIndex', {}, bearer(who))
    t.match(answer, { models: names.map((name) => ({ name })) })
    const listed = await (await overRest('/repository/index', bearer(who), '')).json()
    t.same(
      listed,
      names.map((name) => ({ name, version: '1', state: 'READY' })),
    )
  }
})

await t.test('only an identity with control changes the server, and only its models', async (t) => {
  const { overGrpc, overRest, control, audited } = await open(t, {
    identities: [rule('one'), rule('admin', { control: true })],
  })
  const load = async (who: string | undefined, model: string) => {
    const token = who && bearer(who)
    const request = { model_name: model }
    return [
      (await overGrpc('RepositoryModelLoad', request, token)).code,
      (await overGrpc('RepositoryModelUnload', request, token)).code,
      (await overRest(`/repository/models/${model}/load`, token, '{}')).status,
      (await overRest(`/repository/models/${model}/unload`, token, '{}')).status,
    ]
  }
  const denied = ['PERMISSION_DENIED', 'PERMISSION_DENIED', 403, 403]
  t.same(await load('one', 'a'), denied)
  t.same(await load('admin', 'b'), denied)
  t.same(await load(undefined, 'a'), ['UNAUTHENTICATED', 'UNAUTHENTICATED', 401, 401])
  t.same([control.loads.length, control.unloads.length], [0, 0])
  t.same(await load('admin', 'a'), ['OK', 'OK', 200, 200])
  t.same([control.loads.length, control.unloads.length], [2, 2])
  t.equal((await overGrpc('LogSettings', {}, bearer('one'))).code, 'PERMISSION_DENIED')
  t.equal((await overGrpc('LogSettings', {}, bearer('admin'))).code, 'OK')
  t.equal((await overRest('/trace/setting', bearer('one'))).status, 403)
  t.equal((await overRest('/models/a/trace/setting', bearer('admin'), '{}')).status, 501)
  const [first, second] = audited().filter(({ message }) => message === 'control call')
  t.match(first, {
    call: 'load',
    identity: 'admin',
    model: 'a',
    outcome: 'OK',
    address: /127\.0\.0\.1$/,
  })
  t.match(second, { call: 'unload' })
  t.equal(audited().filter(({ reason }) => reason === 'ACCESS_DENIED').length, 10)
  t.equal(audited().filter(({ reason }) => reason === 'UNAUTHENTICATED').length, 4)
  control.outcome = () => Promise.reject(new ServeError('MODEL_LOAD_FAILED', 'no'))
  await load('admin', 'a')
  t.match(audited().at(-1), { message: 'control call', outcome: 'MODEL_LOAD_FAILED' })
})

await t.test('who proves two identities controls the models of the one with control', async (t) => {
  const { tokenSha256 } = rule('one')
  const { overGrpc, control } = await open(t, {
    identities: [rule('one'), rule('two', { tokenSha256, models: ['b'], control: true })],
  })
  const load = (model: string) =>
    overGrpc('RepositoryModelLoad', { model_name: model }, bearer('one'))
  t.match(await load('a'), { code: 'PERMISSION_DENIED' })
  t.equal(control.loads.length, 0)
  t.match(await load('b'), { code: 'OK' })
})

await t.test('a load that is not allowed is refused before its message is there', async (t) => {
  const { servers, audited } = await open(t, { identities: [rule('one')] })
  const session = connect(`http://127.0.0.1:${servers.ports.grpcPort}`)
  const call = session.request({
    ':method': 'POST',
    ':path': '/inference.GRPCInferenceService/RepositoryModelLoad',
    'content-type': 'application/grpc',
    authorization: bearer('one'),
  })
  const [headers] = await once(call, 'response')
  session.destroy()
  t.equal(headers['grpc-status'], '7')
  t.match(audited(), [{ message: 'call refused', reason: 'ACCESS_DENIED', identity: 'one' }])
})

await t.test('a token that was taken away ends access at once, and a new one counts', async (t) => {
  const { overGrpc, overRest, set } = await open(t, { identities: [rule('one')] })
  t.equal((await overGrpc('ModelInfer', INFER('a'), bearer('one'))).code, 'OK')
  set([rule('two')])
  t.equal((await overGrpc('ModelInfer', INFER('a'), bearer('one'))).code, 'UNAUTHENTICATED')
  t.equal((await overRest('/models/a', bearer('one'))).status, 401)
  t.equal((await overRest('/models/a', bearer('two'))).status, 200)
  set([])
  t.equal((await overRest('/models/a', bearer('two'))).status, 401)
})

await t.test('metrics and audit log say who, never with which token', async (t) => {
  const { overRest, metrics, lines, audited, set } = await open(t, { identities: [rule('one')] })
  await overRest('/models/a', bearer('one'))
  for (let i = 0; i < 150; i += 1) await overRest('/models/a?key=secret', bearer('stranger'))
  const text = await metrics.render()
  t.match(text, 'tutti_server_identity_requests_total{identity="one"} 1')
  t.match(text, 'tutti_server_refused_calls_total{reason="UNAUTHENTICATED"} 150')
  t.match(text, 'tutti_server_refused_calls_total{reason="QUOTA_EXCEEDED"} 0')
  t.equal(audited().length, 100, 'as many lines as may come at once')
  t.match(audited()[0], {
    message: 'call refused',
    call: '/v2/models/a',
    reason: 'UNAUTHENTICATED',
  })
  t.notMatch(JSON.stringify(lines), /token-of|secret/)
  set([rule('two')])
  await overRest('/models/a', bearer('two'))
  const later = await metrics.render()
  t.notMatch(later, /identity="one"/)
  t.match(later, 'tutti_server_identity_requests_total{identity="two"} 1')
})

await t.test(
  'without identities everybody calls everything, and control calls are noted',
  async (t) => {
    const { overRest, audited } = await open(t, {})
    t.equal((await overRest('/models/b', bearer('stranger'))).status, 200)
    t.equal((await overRest('/repository/models/a/load', undefined, '{}')).status, 200)
    t.match(audited(), [{ message: 'control call', call: 'load', model: 'a', outcome: 'OK' }])
  },
)

await t.test('no flood of calls hides who changed the server', async (t) => {
  const control = { models: ['*'], control: true }
  const identities = [rule('admin', control), rule('other', control)]
  const { overRest, audited, control: models } = await open(t, { identities })
  const call = async (action: string, model: string, who = 'admin') =>
    (await overRest(`/repository/models/${model}/${action}`, bearer(who), '{}')).status
  const lines = (action: string, outcome: string, identity = 'admin') =>
    audited().filter(
      (l) => l['call'] === action && l['outcome'] === outcome && l['identity'] === identity,
    )
  // Nothing of that name is loaded, and Triton unloads it all the same.
  for (let i = 0; i < 150; i += 1) t.equal(await call('unload', 'absent'), 200)
  t.equal(lines('unload', 'OK').length, 100, 'as many lines as may come at once')
  t.match(lines('unload', 'OK')[0], { model: 'absent', wasLoaded: false })
  models.outcome = () => Promise.reject(new ServeError('MODEL_LOAD_FAILED', 'no'))
  for (let i = 0; i < 150; i += 1) await call('load', 'a')
  t.equal(lines('load', 'MODEL_LOAD_FAILED').length, 100)
  models.outcome = () => Promise.resolve()
  for (let i = 0; i < 150; i += 1) {
    await call('load', 'a')
    await call('unload', 'a')
  }
  t.equal(lines('load', 'OK').length, 150)
  t.equal(lines('unload', 'OK').filter(({ model }) => model === 'a').length, 150)
  t.notOk(
    lines('unload', 'OK').some(({ model, wasLoaded }) => model === 'a' && wasLoaded === false),
  )
  t.equal(await call('unload', 'absent', 'other'), 200)
  t.equal(lines('unload', 'OK', 'other').length, 1, 'identities take no lines from one another')
})

await t.test('--audit-log=false writes nothing', async (t) => {
  const { overRest, audited } = await open(t, { flags: ['--audit-log=false'] })
  await overRest('/repository/models/a/load', undefined, '{}')
  t.same(audited(), [])
})

await t.test('over mutual TLS the certificate of a client proves its identity', async (t) => {
  const folder = t.testdir()
  const tls = await createTlsFolder(folder)
  const files = { cert: join(folder, 'data/tls.crt'), key: join(folder, 'data/tls.key') }
  const flags = ['grpc', 'http'].flatMap((name) => [
    `--${name}-use-ssl-mutual=true`,
    `--${name}-server-cert=${files.cert}`,
    `--${name}-server-key=${files.key}`,
    `--${name}-root-cert=${tls.caFile}`,
  ])
  const identities = [rule('alice', { certificates: ['CN:alice'], tokenSha256: [] }), rule('bob')]
  const { servers, clock } = await open(t, { identities, flags })
  const address = `127.0.0.1:${servers.ports.grpcPort}`
  const openClient = async (name: string) => {
    const client = new InferenceClient({
      address,
      tls: { ca: tls.ca, ...(await tls.client(name)) },
    })
    t.teardown(() => client.close())
    return client
  }
  const alice = await openClient('alice')
  t.match(await alice.infer({ modelName: 'a', inputs: [] }), { modelName: 'a' })
  await t.rejects(alice.infer({ modelName: 'b', inputs: [] }), { code: 'PERMISSION_DENIED' })
  const mallory = await openClient('mallory')
  await t.rejects(mallory.infer({ modelName: 'a', inputs: [] }), {
    code: 'UNAUTHENTICATED',
    message: 'got a certificate of CN:mallory, which is not known, and no bearer token',
  })
  const ready = async (name: string, token?: string) => {
    const { cert, key } = await tls.client(name)
    const headers = token === undefined ? {} : { authorization: token }
    const path = '/v2/models/a/ready'
    const o = { host: '127.0.0.1', port: servers.ports.httpPort, path, agent: false, headers }
    return await new Promise((resolve, reject) => {
      const asked = get({ ...o, ca: tls.ca, cert, key }, (answer) => {
        answer.resume().once('end', () => resolve(answer.statusCode))
      })
      asked.once('error', reject)
    })
  }
  t.equal(await ready('alice'), 200)
  t.equal(await ready('mallory'), 401)
  t.equal(await ready('mallory', bearer('bob')), 200, 'a token counts before the certificate')
  // The certificates of tests are valid for two days, and the connection is still open.
  clock.advance(3 * 24 * 3_600_000)
  await t.rejects(alice.infer({ modelName: 'a', inputs: [] }), {
    code: 'UNAUTHENTICATED',
    message: /^got a certificate of CN:alice, which expired at .*Z, and no bearer token$/,
  })
})

import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { restCall } from '../rest-call.ts'
import { LOOPBACK, runTutti } from '../serving.ts'
import { copyModels, tempFolder } from '../temp-repository.ts'
import { CHAIN_REQUEST, serveConsole } from './serve-console.ts'

t.setTimeout(120_000)

const OVERVIEW = '/console/api/overview'
const INFER = '/console/api/models/ens_chain/infer'

await t.test('without an access file', async (t) => {
  const repository = await copyModels(t, ['add_one_batch', 'ens_chain'])
  const { consolePort: port, httpPort } = await serveConsole(t, { repository })
  const own = { origin: `http://127.0.0.1:${port}`, 'sec-fetch-site': 'same-origin' }

  await t.test('other names, other pages and frames are kept out', async (t) => {
    const foreign = [
      { host: `evil.example:${port}` },
      { origin: 'http://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
    ]
    for (const headers of foreign) {
      t.equal((await restCall(port, 'GET', OVERVIEW, { headers })).status, 403)
    }
    for (const path of ['/console', OVERVIEW, '/nothing']) {
      const { headers } = await restCall(port, 'GET', path)
      t.match(headers['content-security-policy'], /frame-ancestors 'none'/)
      t.equal(headers['x-frame-options'], 'DENY')
      t.equal(headers['access-control-allow-origin'], undefined)
    }
  })

  await t.test('it changes and runs nothing, and has no other path of the HTTP API', async (t) => {
    for (const path of [
      INFER,
      '/console/api/models/ens_chain/stream',
      '/v2/models/ens_chain/infer',
      '/v2/repository/models/ens_chain/load',
      '/v2/repository/models/ens_chain/unload',
      '/v2/logging',
      '/v2/trace/setting',
      '/v2/systemsharedmemory/region/a/register',
    ]) {
      t.equal((await restCall(port, 'POST', path, { body: '{}', headers: own })).status, 404, path)
    }
    t.equal((await restCall(port, 'POST', OVERVIEW, { body: '{}' })).status, 405)
  })

  await t.test('it catches a request from the one on that a page waits for', async (t) => {
    // A question mark may stand in a query as it is.
    const id = 'mine?1'
    const next = async (): Promise<unknown> => {
      const path = `/console/api/models/ens_chain/next?page=a&turn=1&want=id&id=${id}`
      return (await restCall(port, 'GET', path)).json()
    }
    await sendWithId(httpPort, id)
    t.match(await next(), { seen: 0, caught: undefined }, 'what was before is not known')
    await sendWithId(httpPort, 'other')
    t.match(await next(), { seen: 1, caught: undefined })
    await sendWithId(httpPort, id)
    t.match(await next(), {
      caught: {
        id,
        version: 1,
        reason: '',
        leftOut: 0,
        spans: [{ depth: 0 }, { step: 'add_one_batch#0' }, { step: 'add_one_batch#1' }],
      },
    })
    const wrong = '/console/api/models/ens_chain/next?page=a&turn=2&want=slow'
    t.match((await restCall(port, 'GET', wrong)).headers, {
      'tutti-error-reason': 'INVALID_PARAMETER',
    })
    const foreign = { headers: { 'sec-fetch-site': 'cross-site' } }
    t.equal((await restCall(port, 'GET', wrong, foreign)).status, 403)
  })

  await t.test('a model that is not there', async (t) => {
    const answer = await restCall(port, 'GET', '/console/api/models/%3Cb%3E')
    t.equal(answer.status, 404)
    t.match(answer.headers['content-type'], /json/)
  })
})

await t.test('with an access file each caller has its own models', async (t) => {
  const repository = await copyModels(t, ['add_one_batch', 'ens_chain', 'labels'])
  const file = join(await tempFolder(t), 'access.yaml')
  const digest = createHash('sha256').update('s3cret').digest('hex')
  await writeFile(file, `identities: [{ name: ci, tokenSha256: [${digest}], models: [ens_chain] }]`)
  const flags = [`--access-file=${file}`]
  const { consolePort: port } = await serveConsole(t, { repository, flags })
  const headers = { authorization: 'Bearer s3cret' }
  t.equal((await restCall(port, 'GET', '/console')).status, 200, 'the page itself is no secret')
  t.equal((await restCall(port, 'GET', OVERVIEW)).status, 401)

  const overview = await restCall(port, 'GET', OVERVIEW, { headers })
  t.match(overview.json(), { models: [{ name: 'ens_chain' }] })
  t.notMatch(overview.body.toString(), /labels|add_one_batch/)
  const detail = await restCall(port, 'GET', '/console/api/models/ens_chain', { headers })
  t.match(detail.json(), { graph: { steps: [{ model: 'add_one_batch', state: 'unknown' }, {}] } })
  t.notMatch(detail.body.toString(), /failures":\d+,"inputs/)
  t.equal((await restCall(port, 'GET', '/console/api/models/labels', { headers })).status, 404)
  const next = '/console/api/models/ens_chain/next?page=a&turn=1&want=any'
  const refused = await restCall(port, 'GET', next, { headers })
  t.equal(refused.headers['tutti-error-reason'], 'ACCESS_DENIED', 'it may not see those of others')
})

await t.test('a call of the page counts once in a quota', async (t) => {
  const repository = await copyModels(t, ['add_one_batch', 'ens_chain'])
  const file = join(await tempFolder(t), 'access.yaml')
  const digest = createHash('sha256').update('s3cret').digest('hex')
  const models = 'models: [ens_chain, add_one_batch]'
  const quota = 'quota: { requestsPerSecond: 1, burst: 3 }'
  await writeFile(file, `identities: [{ name: ci, tokenSha256: [${digest}], ${models}, ${quota} }]`)
  const flags = [`--access-file=${file}`]
  const { consolePort: port } = await serveConsole(t, { repository, flags })
  const headers = { authorization: 'Bearer s3cret' }
  const statuses: number[] = []
  for (const path of ['models/ens_chain', 'overview', 'models/add_one_batch']) {
    statuses.push((await restCall(port, 'GET', `/console/api/${path}`, { headers })).status)
  }
  t.same(statuses, [200, 200, 200])
})

await t.test('at an address for others it shows the same', async (t) => {
  const repository = await copyModels(t, ['add_one_batch', 'ens_chain'])
  const flags = ['--console-address=0.0.0.0']
  const { consolePort: port } = await serveConsole(t, { repository, flags })
  t.equal((await restCall(port, 'GET', OVERVIEW)).status, 200)
})

await t.test('it does not show what a header keeps', async (t) => {
  const repository = await tempFolder(t)
  const args = ['serve', `--model-repository=${repository}`, ...LOOPBACK, '--console-port=0']
  const ended = await runTutti([...args, '--http-restricted-api=statistics:key=1'])
  t.equal(ended.code, 2)
  t.match(ended.err, /--console-port: given with --http-restricted-api/)
})

await t.test('settings without a port are refused', async (t) => {
  const repository = await tempFolder(t)
  const args = ['serve', `--model-repository=${repository}`, ...LOOPBACK]
  for (const flag of ['--console-address=0.0.0.0', '--console-infer']) {
    const ended = await runTutti([...args, flag])
    t.equal(ended.code, 2)
    t.match(ended.err, `${flag.replace(/=.*/, '')}: given without --console-port`)
  }
})

await t.test('with --console-infer it sends requests', async (t) => {
  const repository = await copyModels(t, [
    'add_one_batch',
    'ens_chain',
    'ens_nested',
    'fail_at_run',
    'ens_fail',
    'identity_fp32_nonbatch',
  ])
  const flags = ['--console-infer', '--http-max-input-size=4096']
  const { consolePort: port, httpPort } = await serveConsole(t, { repository, flags })
  const infer = (o: { readonly body?: string; readonly headers?: Record<string, string> }) =>
    restCall(port, 'POST', INFER, { body: CHAIN_REQUEST, ...o })

  await t.test('of its own page, and of clients that are no browsers', async (t) => {
    const own = { origin: `http://127.0.0.1:${port}`, 'sec-fetch-site': 'same-origin' }
    for (const headers of [own, {}]) {
      t.match((await infer({ headers })).json(), {
        model_name: 'ens_chain',
        outputs: [{ name: 'Y' }],
      })
    }
    const foreign = [
      { host: `evil.example:${port}` },
      { origin: `http://127.0.0.1:${httpPort}` },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ]
    for (const headers of foreign) t.equal((await infer({ headers })).status, 403)
  })

  await t.test('and says what each step of them took', async (t) => {
    const { headers } = await infer({})
    const spans: unknown = JSON.parse(String(headers['tutti-steps']))
    t.match(spans, [
      { step: '', model: 'ens_chain', depth: 0 },
      { step: 'add_one_batch#0', model: 'add_one_batch', depth: 1 },
      { step: 'add_one_batch#1', model: 'add_one_batch', depth: 1 },
    ])
    const [whole, first, second] = spans as { startMs: number; endMs: number; computeMs: number }[]
    if (!whole || !first || !second) throw new Error('no spans')
    t.ok(first.endMs <= second.startMs && second.endMs <= whole.endMs)
    t.ok(first.computeMs > 0 && first.computeMs <= first.endMs - first.startMs)
    const other = await restCall(httpPort, 'POST', '/v2/models/ens_chain/infer', {
      body: CHAIN_REQUEST,
    })
    t.equal(other.headers['tutti-steps'], undefined, 'no other request pays for it')
    const failed = await restCall(port, 'POST', '/console/api/models/ens_fail/infer', {
      body: JSON.stringify({
        inputs: [{ name: 'x', datatype: 'FP32', shape: [4], data: [1, 1, 1, 1] }],
      }),
    })
    const reason = 'ENGINE_FAILED'
    t.equal(failed.headers['tutti-error-reason'], reason)
    const ended: unknown = JSON.parse(String(failed.headers['tutti-steps']))
    t.match(ended, [
      { step: '', reason },
      { step: 'identity_fp32_nonbatch', reason: '' },
      { step: 'fail_at_run', reason },
    ])
    const path = '/console/api/models/ens_nested/infer'
    const nested = await restCall(port, 'POST', path, { body: CHAIN_REQUEST })
    const depths = [...String(nested.headers['tutti-steps']).matchAll(/"depth":(\d)/g)]
    t.same(
      depths.map(([, depth]) => depth),
      ['0', '1', '2', '2', '1'],
    )
  })

  await t.test('and each response by itself, with the same rules', async (t) => {
    const path = '/console/api/models/ens_chain/stream'
    const body = CHAIN_REQUEST
    const { body: bytes } = await restCall(port, 'POST', path, { body })
    const end = 8 + bytes.readUInt32LE(0) + bytes.readUInt32LE(4)
    const json = (at: number): unknown => {
      const text = bytes.subarray(at + 8, at + 8 + bytes.readUInt32LE(at))
      return JSON.parse(text.toString())
    }
    t.match(json(0), { model_name: 'ens_chain', outputs: [{ name: 'Y', shape: [1, 16] }] })
    t.equal(bytes.readFloatLE(end - 4), 3)
    t.match(json(end), { steps: { leftOut: 0, spans: [{ depth: 0 }, { depth: 1 }, { depth: 1 }] } })
    const foreign = { headers: { origin: `http://127.0.0.1:${httpPort}` }, body }
    t.equal((await restCall(port, 'POST', path, foreign)).status, 403)
    const region = { shared_memory_region: 'a', shared_memory_byte_size: 64 }
    const input = { name: 'X', datatype: 'FP32', shape: [1, 16], parameters: region }
    const placed = await restCall(port, 'POST', path, { body: JSON.stringify({ inputs: [input] }) })
    t.match(placed.json(), { error: 'this port takes no tensors in shared memory' })
    t.equal((await restCall(port, 'GET', path)).status, 405)
  })

  await t.test('as large as those over HTTP, and to no more paths than before', async (t) => {
    const large = await infer({ body: CHAIN_REQUEST + ' '.repeat(4096) })
    t.equal(large.headers['tutti-error-reason'], 'MESSAGE_TOO_LARGE')
    for (const path of ['/v2/models/ens_chain/infer', '/console/api/models/ens_chain/generate']) {
      t.equal((await restCall(port, 'POST', path, { body: CHAIN_REQUEST })).status, 404)
    }
    t.equal((await restCall(port, 'GET', INFER)).status, 405)
  })

  await t.test('but never with memory of other clients', async (t) => {
    const key = { key: '/tutti-none', offset: 0, byte_size: 64 }
    const region = '/v2/systemsharedmemory/region/a/register'
    const place = { shared_memory_region: 'a', shared_memory_byte_size: 64 }
    const input = { name: 'X', datatype: 'FP32', shape: [1, 16] }
    const placed = [
      { inputs: [{ ...input, parameters: place }] },
      {
        inputs: [{ ...input, data: Array(16).fill(0) }],
        outputs: [{ name: 'Y', parameters: place }],
      },
    ]
    t.equal((await restCall(port, 'POST', region, { body: JSON.stringify(key) })).status, 404)
    for (const body of placed.map((one) => JSON.stringify(one))) {
      const answer = await infer({ body })
      t.match(answer.json(), { error: 'this port takes no tensors in shared memory' })
      const other = await restCall(httpPort, 'POST', '/v2/models/ens_chain/infer', { body })
      t.match(other.json(), { error: /Unable to find shared memory region/ })
    }
  })
})

await t.test('its requests need the identity that they would need over HTTP', async (t) => {
  const repository = await copyModels(t, ['add_one_batch', 'ens_chain', 'ens_nested'])
  const file = join(await tempFolder(t), 'access.yaml')
  const digest = createHash('sha256').update('s3cret').digest('hex')
  const quota = 'quota: { requestsPerSecond: 1, burst: 4 }'
  await writeFile(
    file,
    `identities: [{ name: ci, tokenSha256: [${digest}], models: [ens_chain, ens_nested], ${quota} }]`,
  )
  const flags = [`--access-file=${file}`, '--console-infer']
  const { consolePort: port } = await serveConsole(t, { repository, flags })
  const o = { headers: { authorization: 'Bearer s3cret' }, body: CHAIN_REQUEST }
  t.equal((await restCall(port, 'POST', INFER, { body: CHAIN_REQUEST })).status, 401)
  t.equal((await restCall(port, 'POST', INFER, o)).status, 200)
  const other = await restCall(port, 'POST', '/console/api/models/add_one_batch/infer', o)
  t.equal(other.status, 403)
  const nested = await restCall(port, 'POST', '/console/api/models/ens_nested/infer', o)
  t.equal(nested.status, 200)
  t.match(nested.headers['tutti-steps'], /"depth":1/)
  t.notMatch(nested.headers['tutti-steps'], /"depth":2/, 'what is inside is not told')
  const stream = '/console/api/models/add_one_batch/stream'
  t.equal((await restCall(port, 'POST', stream, o)).status, 403)
  const many = Array.from({ length: 16 }, () => restCall(port, 'POST', INFER, o))
  const answers = await Promise.all(many)
  const refused = answers.filter(({ status }) => status === 429)
  t.ok(refused.length > 0)
  t.match(refused[0]?.headers, { 'tutti-error-reason': 'QUOTA_EXCEEDED' })
})

function sendWithId(port: number, id: string): Promise<unknown> {
  const body = JSON.stringify({ ...JSON.parse(CHAIN_REQUEST), id })
  return restCall(port, 'POST', '/v2/models/ens_chain/infer', { body })
}

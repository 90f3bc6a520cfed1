import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { restCall } from '../rest-call.ts'
import { LOOPBACK, runTutti } from '../serving.ts'
import { copyModels, tempFolder } from '../temp-repository.ts'
import { serveConsole } from './serve-console.ts'

t.setTimeout(120_000)

const OVERVIEW = '/console/api/overview'

await t.test('without an access file', async (t) => {
  const repository = await copyModels(t, ['add_one_batch', 'ens_chain'])
  const { consolePort: port } = await serveConsole(t, { repository })
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

await t.test('an address without a port is refused', async (t) => {
  const repository = await tempFolder(t)
  const args = ['serve', `--model-repository=${repository}`, ...LOOPBACK]
  const ended = await runTutti([...args, '--console-address=0.0.0.0'])
  t.equal(ended.code, 2)
  t.match(ended.err, /--console-address: given without --console-port/)
})

import { silentLogger, systemClock } from '@tutti/chassis'
import {
  type Client,
  CONTROLLER_REVISION,
  createClient,
  createTransport,
  KubeError,
  type Stored,
} from '@tutti/kube'
import { startApiServer, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { MODEL, type ModelObject } from '../api/kinds.ts'
import { installCrds } from '../testing/prepare-server.ts'
import type { Revision } from './accepted-revisions.ts'
import { type StoreOptions, storeAccepted } from './store-accepted.ts'

const KEY = { namespace: 'default', name: 'm' }
const { signal } = new AbortController()

const wanted = (...names: readonly string[]) => names.map((name) => ({ name, data: { of: name } }))
const numbers = (revisions: readonly Revision[]) =>
  revisions.map(({ metadata, revision }) => `${metadata.name} ${revision}`)

async function store(
  client: Client,
  object: Stored<ModelObject>,
  o: Pick<StoreOptions, 'wanted'> & Partial<StoreOptions>,
) {
  const owner = { resource: MODEL, object }
  const none = { known: [], orphans: [], findUnused: () => [] }
  return await storeAccepted({ client, owner, ...none, signal, ...o })
}

await t.test('against a real API server', { skip: withoutKube() }, async (t) => {
  const server = await startApiServer()
  t.teardown(() => server.stop())
  await installCrds(server)
  const { plain } = server
  const o = { clock: systemClock, log: silentLogger, userAgent: 'test' }
  const transport = createTransport(server.access(), o)
  t.teardown(() => transport.close())
  const client = createClient(transport)
  const models = '/apis/tutti.dev/v1alpha1/namespaces/default/models'
  await plain.create(models, {
    apiVersion: 'tutti.dev/v1alpha1',
    kind: 'Model',
    metadata: { name: 'm' },
    spec: { modelFormat: { name: 'onnx' }, storageUri: 'pvc://models/x' },
  })
  const model = await client.get(MODEL, KEY)

  await t.test('numbers count up, also if the cache has seen nothing yet', async (t) => {
    const first = await store(client, model, { wanted: wanted('a', 'b') })
    t.same(numbers(first.revisions), ['b 2', 'a 1'])
    t.same(numbers(first.made), ['a 1', 'b 2'])
    t.match(first.made[0]?.metadata, {
      labels: { 'tutti.dev/accepted': 'model', 'tutti.dev/model': 'm' },
      ownerReferences: [{ kind: 'Model', name: 'm', controller: true }],
    })
    const second = await store(client, model, { wanted: wanted('c') })
    t.same(numbers(second.revisions), ['c 3', 'b 2', 'a 1'])
    const again = await store(client, model, { wanted: wanted('c') })
    t.same([numbers(again.revisions), again.made], [['c 3', 'b 2', 'a 1'], []])
  })

  await t.test('what comes back is the newest again, and what is out of use goes', async (t) => {
    const { revisions } = await store(client, model, {
      wanted: wanted('a'),
      findUnused: (all) => all.slice(2),
    })
    t.same(numbers(revisions), ['a 4', 'c 3'])
    const labelSelector = 'tutti.dev/model=m'
    const left = await plain.list(
      `/apis/apps/v1/namespaces/default/controllerrevisions?labelSelector=${labelSelector}`,
    )
    t.same(new Set(left.map(({ metadata }) => metadata['name'])), new Set(['a', 'c']))
  })

  await t.test('what an earlier owner left goes once there is something else', async (t) => {
    const path = '/apis/apps/v1/namespaces/default/controllerrevisions'
    const { metadata } = await plain.create(path, {
      metadata: { name: 'left', labels: { 'tutti.dev/accepted': 'model' } },
      revision: 1,
      data: {},
    })
    const left = await client.get(CONTROLLER_REVISION, { namespace: 'default', name: 'left' })
    const fresh: Stored<ModelObject> = { ...model, metadata: { ...model.metadata, name: 'other' } }
    await store(client, fresh, { wanted: [], orphans: [left] })
    t.equal((await plain.get(`${path}/left`))['metadata'].uid, metadata.uid)
    const { revisions: known } = await store(client, model, { wanted: wanted('a') })
    await store(client, model, { known, wanted: wanted('a'), orphans: [left] })
    t.equal((await plain.send('GET', `${path}/left`)).status, 404)
  })

  await t.test('what is as wanted in the cache costs no request', async (t) => {
    const { revisions: known } = await store(client, model, { wanted: wanted('a') })
    const silent = new Proxy(client, {
      get: () => () => {
        throw new Error('nothing is asked')
      },
    })
    const { revisions, made } = await store(silent, model, { known, wanted: wanted('a') })
    t.same([numbers(revisions), made], [['a 4', 'c 3'], []])
  })

  await t.test('what the server refuses is no failure, and leaves what there is', async (t) => {
    const { revisions, made, refusal } = await store(refusing(client, 403), model, {
      wanted: wanted('e'),
    })
    t.same([numbers(revisions), made], [['a 4', 'c 3'], []])
    t.match(refusal, { status: 403, message: 'no' })
    const failed = store(refusing(client, 500), model, { wanted: wanted('e') })
    t.match(await failed.catch((error: unknown) => error), { status: 500 })
  })

  await t.test('nothing is done for an owner that has changed or is gone', async (t) => {
    await plain.patch(`${models}/m`, { spec: { paused: true } })
    t.same((await store(client, model, { wanted: wanted('d') })).made, [])
    await plain.delete(`${models}/m`)
    t.same((await store(client, model, { wanted: wanted('d') })).made, [])
  })
})

/** Refuses to create anything. */
function refusing(client: Client, status: number): Client {
  const refuses: Partial<Client> = {
    get: (...args) => client.get(...args),
    list: (...args) => client.list(...args),
    create: () => Promise.reject(new KubeError({ status, reason: 'x', message: 'no' })),
  }
  return refuses as Client
}

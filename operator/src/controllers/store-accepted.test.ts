// needs: apiserver
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
import { normaliseModelConfig, parseModelConfig } from '@tutti/model-config'
import t from 'tap'
import { MODEL, type ModelObject } from '../api/kinds.ts'
import { installCrds } from '../testing/prepare-server.ts'
import { type Revision, toWanted } from './accepted-revisions.ts'
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

  await t.test(
    "what lacks its labels or its owner, or is another's, is told and left alone",
    async (t) => {
      const path = '/apis/apps/v1/namespaces/default/controllerrevisions/a'
      const { metadata: before } = await plain.get(path)
      const { labels, ownerReferences } = before
      const others = [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u', controller: true }]
      for (const taken of [
        { labels: { 'tutti.dev/accepted': null } },
        { labels: { 'app.kubernetes.io/managed-by': null } },
        { ownerReferences: null },
        { ownerReferences: others },
      ]) {
        await plain.patch(path, { metadata: taken })
        const { metadata } = await plain.get(path)
        const known = [await client.get(CONTROLLER_REVISION, { namespace: 'default', name: 'a' })]
        for (const seen of 'labels' in taken ? [known, []] : [[]]) {
          const { made, refusal } = await store(client, model, { known: seen, wanted: wanted('a') })
          t.same(made, [])
          t.match(refusal?.message, /"a" already exists, .* the labels or the owner .*: delete it/)
        }
        t.same((await plain.get(path))['metadata'], metadata)
        await plain.patch(path, { metadata: { labels, ownerReferences } })
      }
    },
  )

  await t.test('what was made before another is refused is told, and stays', async (t) => {
    const stored = await store(limited(client, 3), model, { wanted: wanted('e', 'f') })
    t.same(numbers(stored.made), ['e 5'])
    t.same(numbers(stored.revisions), ['e 5', 'a 4', 'c 3'])
    t.match(stored.refusal, { message: /exceeded quota/ })
  })

  await t.test('a revision that is out of use and cannot be deleted does no harm', async (t) => {
    const stored = await store(keeping(client), model, {
      wanted: wanted('h'),
      findUnused: (all) => all.slice(1),
    })
    t.same([numbers(stored.made), stored.refusal], [['h 6'], undefined])
    t.same(numbers(stored.revisions), ['h 6', 'e 5', 'a 4', 'c 3'])
    t.match(stored.left, { status: 403, message: 'kept' })
  })

  await t.test('one from which somebody took its owner is not deleted', async (t) => {
    const orphan = await leave(client, 'm', { uid: model.metadata.uid, number: 1 })
    await store(client, model, { wanted: wanted('g'), orphans: [orphan] })
    const { namespace, name } = orphan.metadata
    t.ok(await client.get(CONTROLLER_REVISION, { namespace: namespace ?? '', name }))
  })

  await t.test('nothing is done for an owner that has changed or is gone', async (t) => {
    await plain.patch(`${models}/m`, { spec: { paused: true } })
    await t.rejects(store(client, model, { wanted: wanted('d') }), /has been edited/)
    await plain.delete(`${models}/m`)
    await t.rejects(store(client, model, { wanted: wanted('d') }), /is gone/)
    t.same(
      await plain.list(
        '/apis/apps/v1/namespaces/default/controllerrevisions?fieldSelector=metadata.name=d',
      ),
      [],
    )
  })
})

/** Leaves behind what was accepted of an earlier Model, as `--cascade=orphan` does. */
async function leave(
  client: Client,
  name: string,
  { uid, number: revision }: { readonly uid: string; readonly number: number },
): Promise<Revision> {
  const config = normaliseModelConfig(parseModelConfig(`name: "${name}"`, 'test'))
  const versions = [{ version: 1, revision: `r${revision}` }]
  const resource = { name, uid, generation: 1 }
  const data = toWanted(
    { kind: 'Model', modelName: name, resource, config, versions },
    { ignoresGeneration: true },
  ).data
  const metadata = {
    namespace: KEY.namespace,
    name: `${name}-left-${uid}-${revision}`,
    labels: { 'tutti.dev/accepted': 'model', 'tutti.dev/model': name },
  }
  const options = { fieldManager: 'test', signal }
  return await client.create(CONTROLLER_REVISION, { metadata, data, revision }, options)
}

/** As a quota does: it refuses to create one beyond so many. */
function limited(client: Client, most: number): Client {
  const create: Client['create'] = async (...args) => {
    const selection = { namespace: KEY.namespace, labelSelector: 'tutti.dev/model=m', signal }
    const { items } = await client.list(CONTROLLER_REVISION, selection)
    if (items.length < most) return await client.create(...args)
    throw new KubeError({ status: 403, reason: 'Forbidden', message: 'exceeded quota: few' })
  }
  const wrapped: Partial<Client> = {
    get: (...args) => client.get(...args),
    list: (...args) => client.list(...args),
    delete: (...args) => client.delete(...args),
    create,
  }
  return wrapped as Client
}

/** Refuses to create anything. */
function refusing(client: Client, status: number): Client {
  const refuses: Partial<Client> = {
    get: (...args) => client.get(...args),
    list: (...args) => client.list(...args),
    create: () => Promise.reject(new KubeError({ status, reason: 'x', message: 'no' })),
  }
  return refuses as Client
}

/** Refuses to delete anything. */
function keeping(client: Client): Client {
  const keeps: Partial<Client> = {
    get: (...args) => client.get(...args),
    list: (...args) => client.list(...args),
    create: (...args) => client.create(...args),
    delete: () =>
      Promise.reject(new KubeError({ status: 403, reason: 'Forbidden', message: 'kept' })),
  }
  return keeps as Client
}

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
import { unusedOfLeft } from './left-revisions.ts'
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
  const none = { known: [], orphans: [], left: () => [], findUnused: () => [] }
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

  await t.test('what somebody took labels or its owner from is found again', async (t) => {
    const path = '/apis/apps/v1/namespaces/default/controllerrevisions/a'
    const { metadata: before, revision } = await plain.get(path)
    for (const taken of [
      { labels: { 'tutti.dev/accepted': null } },
      { labels: { 'app.kubernetes.io/managed-by': null } },
      { ownerReferences: null },
    ]) {
      await plain.patch(path, { metadata: taken })
      // Still in the cache where the label by which it reads is there.
      const known = [await client.get(CONTROLLER_REVISION, { namespace: 'default', name: 'a' })]
      for (const seen of [known, []]) {
        const { revisions } = await store(client, model, { known: seen, wanted: wanted('a') })
        t.equal(revisions[0]?.metadata.name, 'a')
      }
      const { metadata, revision: after } = await plain.get(path)
      t.same(metadata.labels, before.labels)
      t.same(metadata.ownerReferences, before.ownerReferences)
      t.equal(metadata.uid, before.uid)
      t.equal(after, revision)
    }
  })

  await t.test('what another has, or what holds something else, is left alone', async (t) => {
    const path = '/apis/apps/v1/namespaces/default/controllerrevisions'
    const others = [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u', controller: true }]
    for (const [name, ownerReferences, data] of [
      ['theirs', others, { of: 'theirs' }],
      ['forged', [], { of: 'something' }],
    ] as const) {
      const { metadata } = await plain.create(path, {
        metadata: { name, ownerReferences },
        revision: 1,
        data,
      })
      await t.rejects(store(client, model, { wanted: wanted(name) }), /belongs to another owner/)
      t.same((await plain.get(`${path}/${name}`))['metadata'], metadata)
      await plain.delete(`${path}/${name}`)
    }
  })

  await t.test('what was made before another is refused is told, and stays', async (t) => {
    const stored = await store(limited(client, 3), model, { wanted: wanted('e', 'f') })
    t.same(numbers(stored.made), ['e 5'])
    t.same(numbers(stored.revisions), ['e 5', 'a 4', 'c 3'])
    t.match(stored.refusal, { message: /exceeded quota/ })
  })

  await t.test('history makes room where a quota refuses, one at a time', async (t) => {
    const few = limited(client, 3)
    const o: Pick<StoreOptions, 'wanted' | 'findUnused'> = {
      wanted: wanted('f'),
      findUnused: (all, history) => all.slice(1 + history),
    }
    const refused = await store(few, model, o)
    t.match(refused.refusal, { message: /exceeded quota/ })
    t.same(numbers(refused.revisions), ['e 5', 'a 4'])
    const { revisions, refusal } = await store(few, model, o)
    t.same([numbers(revisions), refusal], [['f 6', 'e 5', 'a 4'], undefined])
  })

  await t.test('what is out of use goes before anything is made, never the newest', async (t) => {
    const stored = await store(limited(client, 3), model, {
      wanted: wanted('g'),
      findUnused: (all) => all.slice(1),
    })
    t.same([numbers(stored.revisions), stored.refusal], [['g 7'], undefined])
    const refused = await store(limited(client, 1), model, {
      wanted: wanted('h'),
      findUnused: (all) => all.slice(1),
    })
    t.same(numbers(refused.revisions), ['g 7'])
  })

  await t.test("what is out of use and cannot be deleted is in nobody's way", async (t) => {
    const stored = await store(keeping(client), model, {
      wanted: wanted('h'),
      findUnused: (all) => all.slice(1),
    })
    t.same([numbers(stored.made), stored.refusal], [['h 8'], undefined])
    t.same(numbers(stored.revisions), ['h 8', 'g 7'])
    t.match(stored.left, { status: 403, message: 'kept' })
  })

  await t.test('one that somebody took the owner or a label from is not left behind', async (t) => {
    const path = '/apis/apps/v1/namespaces/default/controllerrevisions'
    const { uid } = model.metadata
    const [old, now] = ['old', 'now'].map((of) => ({ name: of, data: { of, resource: { uid } } }))
    if (old === undefined || now === undefined) return
    await store(client, model, { wanted: [old] })
    const { revisions } = await store(client, model, { wanted: [now] })
    const { metadata: before } = await plain.get(`${path}/old`)
    for (const taken of [{ ownerReferences: null }, { labels: { 'tutti.dev/accepted': null } }]) {
      await plain.patch(`${path}/old`, { metadata: taken })
      const seen = await client.get(CONTROLLER_REVISION, { namespace: 'default', name: 'old' })
      const others = revisions.filter(({ metadata }) => metadata.name !== 'old')
      const cached =
        'labels' in taken ? { known: [seen, ...others] } : { known: others, orphans: [seen] }
      const stored = await store(client, model, { wanted: [now], ...cached })
      t.same(stored.made, [])
      const { metadata: after } = await plain.get(`${path}/old`)
      t.same([after.uid, after.labels], [before.uid, before.labels])
      t.same(after.ownerReferences, before.ownerReferences)
    }
  })

  await t.test('what an earlier owner left makes room, but for what routers use', async (t) => {
    await plain.create(models, {
      apiVersion: 'tutti.dev/v1alpha1',
      kind: 'Model',
      metadata: { name: 'n' },
      spec: { modelFormat: { name: 'onnx' }, storageUri: 'pvc://models/x' },
    })
    const again = await client.get(MODEL, { ...KEY, name: 'n' })
    const left = (uid: string, ...numbers: readonly number[]) =>
      Promise.all(numbers.map((number) => leave(client, 'n', { uid, number })))
    const orphans = await left('gone', 1, 2, 3)
    const [one, two] = orphans
    const few = limited(client, 2, 'n')
    const o: Partial<StoreOptions> = {
      orphans,
      left: () => orphans,
      // A pod of then still serves the second.
      findUnused: (all) => all.filter(({ metadata }) => metadata.name !== two?.metadata.name),
    }
    const full = await store(few, again, { ...o, wanted: wanted('n-a') })
    t.match(full.refusal, {
      status: 403,
      message:
        'exceeded quota: few; ControllerRevisions without an owner count too, delete those of which nothing is to be served any more: "n-left-gone-2", "n-left-gone-3"',
    })
    const path = '/apis/apps/v1/namespaces/default/controllerrevisions'
    const rest = async () =>
      (await plain.list(`${path}?labelSelector=tutti.dev/model=n`)).map(
        ({ metadata }) => metadata['name'],
      )
    t.same(
      await rest(),
      ['n-left-gone-2', 'n-left-gone-3'],
      'the newest is what routers go on with',
    )
    const unserved = await store(few, again, {
      ...o,
      orphans: orphans.filter((orphan) => orphan !== one),
      findUnused: (all) => all.slice(1),
      wanted: wanted('n-a'),
    })
    t.same([numbers(unserved.made), unserved.refusal], [['n-a 1'], undefined])
    t.same(await rest(), ['n-a'])
    // Of two owners before, nobody knows which of them routers go on with.
    const mixed = [...(await left('one', 4, 5)), ...(await left('two', 6))]
    t.same(
      unusedOfLeft(mixed, (all) => all),
      [],
    )
    t.same(
      unusedOfLeft(mixed.slice(0, 2), (all) => all).map(({ metadata }) => metadata.name),
      ['n-left-one-4'],
    )
  })

  await t.test('nothing is done for an owner that has changed or is gone', async (t) => {
    await plain.patch(`${models}/m`, { spec: { paused: true } })
    t.same((await store(client, model, { wanted: wanted('d') })).made, [])
    await plain.delete(`${models}/m`)
    t.same((await store(client, model, { wanted: wanted('d') })).made, [])
  })
})

/** What was accepted of an earlier Model, as `--cascade=orphan` leaves it. */
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
function limited(client: Client, most: number, model = 'm'): Client {
  const create: Client['create'] = async (...args) => {
    const labelSelector = `tutti.dev/model=${model}`
    const selection = { namespace: KEY.namespace, labelSelector, signal }
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

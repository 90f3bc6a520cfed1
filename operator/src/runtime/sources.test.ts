import { silentLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { CONFIG_MAP, DEPLOYMENT, type KubeObject, type Resource, type Stored } from '@tutti/kube'
import t from 'tap'
import { memoryReflector } from '../testing/memory-reflector.ts'
import { settle } from '../testing/settle.ts'
import { storedObject } from '../testing/stored-object.ts'
import { Cache, type CacheOptions } from './cache.ts'
import { childSource, ownSource, referenceSource, type Source } from './sources.ts'

const MODEL: Resource = {
  group: 'tutti.dev',
  version: 'v1alpha1',
  plural: 'models',
  kind: 'Model',
  namespaced: true,
}

function rig(o: Partial<CacheOptions<KubeObject>> = {}) {
  const clock = createManualClock()
  const reflector = memoryReflector()
  const cache = new Cache<KubeObject>({
    openReflector: reflector.open,
    resource: MODEL,
    clock,
    log: silentLogger,
    isFrozen: true,
    ...o,
  })
  return { cache, clock, reflector }
}

const collect = (source: Source) => {
  const got: string[] = []
  const end = source.start((key, priority) => got.push(`${key} ${priority}`))
  return { got, end }
}

const label = (object: Stored<KubeObject>) => Object.values(object.metadata.labels ?? {})

const child = (ownerReferences: object[]) =>
  storedObject({ name: 'c', uid: 'c', ownerReferences: ownerReferences as never })

const refTo = (name: string, o: object = {}) => [
  { apiVersion: 'tutti.dev/v1alpha1', kind: 'Model', name, uid: 'u', controller: true, ...o },
]

await t.test(
  'a cache has objects, indexes and owners, from the first complete state on',
  async (t) => {
    const { cache, reflector } = rig({ indexers: { label } })
    t.equal(cache.hasSynced, false)
    t.same([cache.get('ns/a'), cache.list(), cache.keys()], [undefined, [], []])
    t.equal(cache.reading().objects, 0)
    t.equal(cache.isStuck(0), false)
    cache.start()
    t.throws(() => cache.start(), /started twice/)
    let isSynced = false
    void cache.synced.then(() => (isSynced = true))
    await settle()
    t.equal(isSynced, false)
    const a = storedObject({ name: 'a', labels: { x: 'red' }, ownerReferences: refTo('m') })
    reflector.sync([a, storedObject({ name: 'b', labels: { x: 'red', y: 'blue' } })])
    await cache.synced
    t.equal(cache.hasSynced, true)
    t.equal(cache.byIndex('label', 'red').length, 2)
    t.equal(cache.byOwner({ namespace: 'ns', uid: 'u' })[0]?.metadata.name, 'a')
    t.same(cache.byOwner({ namespace: 'other', uid: 'u' }), [], 'no owner has children elsewhere')
    t.throws(() => cache.byIndex('colour', 'red'), /no index "colour"/)
    reflector.put(storedObject({ name: 'b', labels: { y: 'blue' } }))
    t.same(
      cache.byIndex('label', 'red').map(({ metadata }) => metadata.name),
      ['a'],
    )
    reflector.remove('ns/a')
    const owned = cache.byOwner({ namespace: 'ns', uid: 'u' })
    t.same([cache.byIndex('label', 'red'), owned, cache.keys()], [[], [], ['ns/b']])
    t.match(cache.reading(), { resource: 'models', objects: 1, lists: 1 })
    await cache.close()
    t.equal(reflector.isClosed, true)
  },
)

await t.test('objects of a frozen cache cannot be changed', async (t) => {
  const { cache, reflector } = rig()
  cache.start()
  reflector.sync([storedObject({ name: 'a', labels: { x: '1' }, managedFields: [] })])
  const { metadata } = cache.get('ns/a') ?? storedObject({ name: 'none' })
  t.equal(metadata.managedFields, undefined)
  t.throws(() => Object.assign(metadata.labels ?? {}, { x: '2' }), TypeError)
})

await t.test('a cache is stuck when nothing is heard and nothing is tried', async (t) => {
  const { cache, clock, reflector } = rig()
  cache.start()
  reflector.sync()
  clock.advance(1000)
  reflector.stats = { ...reflector.stats, silentMs: 5000 }
  t.equal(cache.isStuck(500), false, 'it has just been looked at')
  clock.advance(600)
  t.equal(cache.isStuck(500), true)
  reflector.stats = { ...reflector.stats, errors: 1 }
  t.equal(cache.isStuck(500), false, 'it tries')
})

await t.test('a kind that the cluster lacks counts as read, and is asked for again', async (t) => {
  let answer: boolean | Error = new Error('away')
  const { cache, clock, reflector } = rig({
    isServed: async () => {
      if (answer instanceof Error) throw answer
      return answer
    },
  })
  cache.start()
  await settle()
  t.equal(cache.hasSynced, false, 'it is not known yet')
  answer = false
  clock.advance(2000)
  await settle()
  await cache.synced
  t.same([cache.hasSynced, cache.isServed, cache.list()], [true, false, []])
  const { got } = collect(ownSource(cache))
  let told = 0
  cache.onServed(() => {
    told += 1
  })
  clock.advance(30_000)
  await settle()
  answer = true
  clock.advance(30_000)
  await settle()
  t.equal(told, 1)
  t.same([cache.hasSynced, cache.isServed], [true, true])
  reflector.sync([storedObject({ name: 'a' })])
  t.same(got, ['ns/a low'])
  await cache.close()
  t.equal(clock.pending, 0)

  const closed = rig({ isServed: async () => true })
  closed.cache.start()
  await closed.cache.close()
  await settle()
  t.equal(closed.cache.isServed, false)
})

await t.test(
  'own objects: what was there comes low, what was meant to change comes high',
  async (t) => {
    const { cache, reflector } = rig()
    cache.start()
    reflector.sync([storedObject({ name: 'a', uid: 'a', generation: 1 })])
    const source = ownSource(cache)
    t.equal(source.hasSynced, true)
    t.same(source.keys(), ['ns/a'])
    const { got, end } = collect(source)
    const put = (o: object) =>
      reflector.put(storedObject({ name: 'a', uid: 'a', generation: 1, ...o }))
    put({})
    t.same(got, ['ns/a low'], 'a status is nothing new')
    const changes = [
      { generation: 2 },
      { labels: { x: 'y' } },
      { annotations: { x: 'y' } },
      { finalizers: ['f'] },
      { deletionTimestamp: 'now' },
    ]
    for (const change of changes) {
      put(change)
      put({})
    }
    t.equal(got.length, 1 + 2 * changes.length)
    reflector.remove('ns/a')
    t.equal(got.at(-1), 'ns/a high')
    end()
    reflector.put(storedObject({ name: 'a' }))
    t.equal(got.length, 2 + 2 * changes.length)
  },
)

await t.test('children: any write concerns the owner, now and before', async (t) => {
  const { cache, reflector } = rig({ resource: DEPLOYMENT })
  cache.start()
  const source = childSource(cache, MODEL)
  const { got } = collect(source)
  t.same(source.keys(), [])
  reflector.sync([child(refTo('one'))])
  reflector.put(child(refTo('one')))
  reflector.put(child(refTo('two')))
  reflector.put(child([]))
  reflector.put(child(refTo('three', { kind: 'Ensemble' })))
  reflector.put(child(refTo('four', { apiVersion: 'v1' })))
  reflector.put(child(refTo('five', { controller: false })))
  t.same(got, ['ns/one low', 'ns/one high', 'ns/two high', 'ns/one high', 'ns/two high'])
  const same = child(refTo('six'))
  reflector.put(same)
  got.length = 0
  reflector.put(same)
  t.same(got, [], 'a relist that finds it as it was')
  const cluster = collect(childSource(cache, { ...MODEL, namespaced: false }))
  t.same(cluster.got, ['six low'])
})

await t.test('references: an index says whom an object concerns', async (t) => {
  const { cache, reflector } = rig({ resource: CONFIG_MAP })
  cache.start()
  reflector.sync()
  const { got } = collect(
    referenceSource({ cache, toKeys: () => ['ns/x', 'ns/y', 'ns/x'], priority: 'low' }),
  )
  reflector.put(storedObject({ name: 'settings' }))
  t.same(got, ['ns/x low', 'ns/y low'])
})

import { silentLogger, systemClock } from '@tutti/chassis'
import type { KubeObject, Reflector, ReflectorOptions, Stored } from '@tutti/kube'
import { CONFIG_MAP } from '@tutti/kube'
import t from 'tap'
import { Cache, type OpenReflector } from './cache.ts'
import { inNamespaces } from './in-namespaces.ts'

/** Reflectors that say what a test has them say. */
function scripted() {
  const opened: {
    readonly namespace: string | undefined
    readonly closed: () => boolean
    readonly add: (name: string) => void
    readonly remove: (name: string) => void
    readonly sync: () => void
  }[] = []
  const open = <T extends KubeObject, K extends KubeObject = T>(
    o: Omit<ReflectorOptions<T, K>, 'client'>,
  ): Reflector<K> => {
    const { namespace } = o
    const objects = new Map<string, Stored<K>>()
    const state = { hasSynced: false, isClosed: false }
    const object = (name: string): Stored<K> =>
      // The object is of the kind that the cache is of, as far as the test looks.
      ({ kind: 'ConfigMap', metadata: { name, namespace, uid: name } }) as unknown as Stored<K>
    opened.push({
      namespace,
      closed: () => state.isClosed,
      add: (name) => {
        const key = `${namespace}/${name}`
        const added = object(name)
        objects.set(key, added)
        o.onEvent({ type: 'added', key, object: added, isInitial: !state.hasSynced })
      },
      remove: (name) => {
        const key = `${namespace}/${name}`
        const old = objects.get(key) ?? object(name)
        objects.delete(key)
        o.onEvent({ type: 'deleted', key, object: object(name), old })
      },
      sync: () => {
        state.hasSynced = true
        o.onSynced?.()
      },
    })
    return {
      objects,
      get hasSynced() {
        return state.hasSynced
      },
      stats: () => ({
        lists: 1,
        watches: 2,
        errors: 0,
        objects: objects.size,
        silentMs: namespace === 'b' ? 7 : 3,
      }),
      close: async () => {
        state.isClosed = true
      },
    }
  }
  return { opened, open }
}

function openCache(openReflector: OpenReflector, namespace?: string) {
  const cache = new Cache({
    openReflector,
    resource: CONFIG_MAP,
    ...(namespace !== undefined && { namespace }),
    clock: systemClock,
    log: silentLogger,
  })
  cache.start()
  return cache
}

await t.test('a cache of some namespaces is a watch for each, and looks like one', async (t) => {
  const { opened, open } = scripted()
  const cache = openCache(inNamespaces(open, ['a', 'b', 'a']))
  t.same(
    opened.map(({ namespace }) => namespace),
    ['a', 'b'],
  )
  const [a, b] = opened
  a?.add('one')
  a?.sync()
  t.notOk(cache.hasSynced, 'while one is not complete')
  b?.add('one')
  b?.add('two')
  b?.sync()
  await cache.synced
  t.ok(cache.hasSynced)
  t.same(cache.keys(), ['a/one', 'b/one', 'b/two'])
  b?.remove('one')
  t.same(cache.keys(), ['a/one', 'b/two'])
  t.match(cache.reading(), { lists: 2, watches: 4, objects: 2 })
  await cache.close()
  t.same(
    opened.map(({ closed }) => closed()),
    [true, true],
  )
})

await t.test('a cache that names its namespace keeps it', async (t) => {
  const { opened, open } = scripted()
  openCache(inNamespaces(open, ['a', 'b']), 'own')
  t.same(
    opened.map(({ namespace }) => namespace),
    ['own'],
  )
})

await t.test('without names all namespaces are watched at once', async (t) => {
  const { opened, open } = scripted()
  openCache(inNamespaces(open, []))
  t.same(
    opened.map(({ namespace }) => namespace),
    [undefined],
  )
})

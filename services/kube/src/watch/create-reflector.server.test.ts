// needs: apiserver
import t, { type Test } from 'tap'
import { CONFIG_MAP } from '../kinds/core.ts'
import type { KubeObject } from '../object.ts'
import { defineResource } from '../resource.ts'
import {
  type ApiServer,
  type HttpFaultProxy,
  startApiServer,
  startHttpFaultProxy,
  withoutKube,
} from '../testing/index.ts'
import { openReflector, openTestClient, type ReflectorLog } from '../testing/reflector-log.ts'

const OPTIONS = { fieldManager: 'tester' }

await t.test('a reflector of a real API server', { skip: withoutKube() }, async (t) => {
  const server: ApiServer = await startApiServer()
  t.teardown(() => server.stop())
  const client = openTestClient(t, server.access())
  let namespaces = 0

  /** A namespace with the objects `a`, `b` and `c`, and a reflector of it behind a proxy. */
  const setUp = async (
    t: Test,
    idleMs?: number,
  ): Promise<{
    namespace: string
    proxy: HttpFaultProxy
    log: ReflectorLog<KubeObject>
    write: (name: string, data?: string) => Promise<unknown>
    remove: (name: string) => Promise<void>
  }> => {
    namespaces += 1
    const namespace = `test-${namespaces}`
    await client.create(
      { ...defineResource('v1', 'namespaces', 'Namespace'), namespaced: false },
      { metadata: { name: namespace } },
      OPTIONS,
    )
    const write = (name: string, value = 'new'): Promise<unknown> => {
      const metadata = { name, namespace, labels: { value } }
      return client.apply(CONFIG_MAP, { metadata, data: { value } }, OPTIONS)
    }
    for (const name of ['a', 'b', 'c']) await write(name, 'old')
    const proxy = await startHttpFaultProxy(server)
    t.teardown(() => proxy.close())
    const log = openReflector(t, {
      client: openTestClient(t, proxy.access()),
      resource: CONFIG_MAP,
      namespace,
      ...(idleMs !== undefined && { idleMs }),
    })
    const remove = (name: string): Promise<void> =>
      client.delete(CONFIG_MAP, { namespace, name }, {})
    return { namespace, proxy, log, write, remove }
  }

  /** Changes without a watch: `a` is deleted, `b` deleted and created again, `c` changed, `d` created. */
  const changeAll = async (o: Awaited<ReturnType<typeof setUp>>): Promise<void> => {
    await o.remove('a')
    await o.remove('b')
    await o.write('b')
    await o.write('c')
    await o.write('d')
  }
  const AFTER_ALL = ['deleted a', 'deleted b', 'added b', 'updated c', 'added d']

  await t.test('the first state comes at once, then every change', async (t) => {
    const { log, write, remove, namespace } = await setUp(t)
    t.equal(log.reflector.hasSynced, false)
    await synced(log)
    t.same(log.events.toSorted(), ['initial a', 'initial b', 'initial c'])
    await write('d')
    await write('a')
    await remove('b')
    await log.until(() => log.events.length === 6)
    t.same(log.events.slice(3), ['added d', 'updated a', 'deleted b'])
    const object = log.reflector.objects.get(`${namespace}/a`)
    t.match(object, { apiVersion: 'v1', kind: 'ConfigMap', data: { value: 'new' } })
    t.equal(object?.metadata.managedFields, undefined)
    t.same(
      [...log.reflector.objects.keys()].toSorted(),
      ['a', 'c', 'd'].map((n) => `${namespace}/${n}`),
    )
    t.match(log.reflector.stats(), { lists: 1, watches: 1, errors: 0, objects: 3 })
  })

  await t.test('what leaves the selection is deleted', async (t) => {
    const { namespace, write } = await setUp(t)
    const log = openReflector(t, {
      client,
      resource: CONFIG_MAP,
      namespace,
      labelSelector: 'value=old',
    })
    await synced(log)
    await write('b')
    await log.until(() => log.events.length === 4)
    t.equal(log.events[3], 'deleted b')
  })

  for (const status of [400, 422]) {
    await t.test(`a server without WatchList (${status}) is read in pages`, async (t) => {
      const { proxy, namespace, write } = await setUp(t)
      proxy.addRule({ when: isInitial, fault: { type: 'answer', status } })
      const log = openReflector(t, {
        client: openTestClient(t, proxy.access()),
        resource: CONFIG_MAP,
        namespace,
      })
      await synced(log)
      await write('d')
      await log.until(() => log.events.includes('added d'))
      t.ok(log.lines.some(({ message }) => String(message).includes('no WatchList')))
      t.match(log.reflector.stats(), { lists: 1, watches: 1 })
    })
  }

  await t.test('a watch that is cut goes on from where it was', async (t) => {
    const o = await setUp(t)
    await synced(o.log)
    o.proxy.refuse()
    await changeAll(o)
    o.proxy.accept()
    await o.log.until(() => o.log.events.includes('added d'))
    t.same(o.log.events.slice(3), AFTER_ALL)
    t.equal(o.log.reflector.stats().lists, 1)
    t.ok(o.log.lines.some(({ message }) => message === 'watch recovered'))
  })

  for (const type of ['answer', 'watch-error'] as const) {
    await t.test(`410 by ${type}: everything is read anew, and compared`, async (t) => {
      const o = await setUp(t)
      await synced(o.log)
      o.proxy.refuse()
      await changeAll(o)
      o.proxy.addRule({
        isWatch: true,
        when: (r) => !isInitial(r),
        times: 1,
        fault: { type, status: 410 },
      })
      o.proxy.accept()
      await o.log.until(() => o.log.events.includes('added d'))
      t.same(o.log.events.slice(3).toSorted(), AFTER_ALL.toSorted())
      t.ok(o.log.events.indexOf('deleted b') < o.log.events.indexOf('added b'))
      t.equal(o.log.reflector.stats().lists, 2)
    })
  }

  await t.test('an API server that is killed and comes back is watched on', async (t) => {
    const o = await setUp(t)
    await synced(o.log)
    await server.kill()
    await o.log.until(() => o.log.lines.some(({ message }) => message === 'watch failed'))
    await server.restart()
    await changeAll(o)
    await o.log.until(() => o.log.events.includes('added d'))
    t.same(o.log.events.slice(3).toSorted(), AFTER_ALL.toSorted())
  })

  await t.test('a version that etcd has forgotten is read anew', async (t) => {
    const o = await setUp(t)
    await synced(o.log)
    o.proxy.refuse()
    await changeAll(o)
    // The restarted server remembers nothing from before, and neither does etcd.
    await server.compact()
    await server.restart()
    await o.write('e')
    o.proxy.accept()
    await o.log.until(() => o.log.events.includes('added e'))
    t.same(o.log.events.slice(3).toSorted(), [...AFTER_ALL, 'added e'].toSorted())
    t.ok(o.log.lines.some(({ message }) => String(message).startsWith('watch expired')))
    t.equal(o.log.reflector.stats().lists, 2)
  })

  await t.test('a connection on which nothing moves is given up', async (t) => {
    const o = await setUp(t, 1000)
    await synced(o.log)
    o.proxy.freezeWatches()
    await changeAll(o)
    await o.log.until(() => o.log.lines.some(isTimeout))
    t.equal(o.log.events.length, 3)
    o.proxy.thawWatches()
    await o.log.until(() => o.log.events.includes('added d'))
    t.same(o.log.events.slice(3), AFTER_ALL)
  })

  await t.test('an older state that a lagging server gives is taken, and left again', async (t) => {
    const o = await setUp(t)
    await synced(o.log)
    const past = await o.proxy.remember()
    await changeAll(o)
    await o.log.until(() => o.log.events.includes('added d'))
    // A version that is too old has it read everything anew.
    o.proxy.addRule({ isWatch: true, times: 1, fault: { type: 'watch-error', status: 410 } })
    o.proxy.rewind(past)
    await o.log.until(() => o.log.events.includes('deleted d'))
    await o.log.until(() => o.log.reflector.stats().lists === 2)
    const [deletedD] = o.log.events.slice(8)
    t.equal(deletedD, 'deleted d')
    o.proxy.present()
    const isPresent = (): boolean => o.log.reflector.objects.has(`${o.namespace}/d`)
    await o.log.until(isPresent)
    t.equal(o.log.reflector.objects.has(`${o.namespace}/a`), false)
    t.equal(o.log.reflector.objects.size, 3)
  })

  await t.test('a handler that throws stops nothing', async (t) => {
    const { namespace, write } = await setUp(t)
    const log = openReflector(t, {
      client,
      resource: CONFIG_MAP,
      namespace,
      onEvent: () => {
        throw new Error('clumsy')
      },
    })
    await log.until(() => log.reflector.hasSynced)
    await write('d')
    await log.until(() => log.events.includes('added d'))
    await log.until(() => log.lines.length === 4)
    t.match(log.lines[3], { message: 'event handler failed', type: 'added', key: `${namespace}/d` })
  })

  await t.test('after it is closed nothing comes any more', async (t) => {
    const { log, write, proxy } = await setUp(t)
    await synced(log)
    await log.reflector.close()
    await log.reflector.close()
    await write('d')
    t.equal(log.events.length, 3)
    t.equal(log.lines.length, 0)
    // The proxy hears of it a moment later.
    while (proxy.watches > 0) await new Promise(setImmediate)
  })
})

function isInitial(request: { readonly query: URLSearchParams }): boolean {
  return request.query.has('sendInitialEvents')
}

function isTimeout(line: Readonly<Record<string, unknown>>): boolean {
  return JSON.stringify(line).includes('nothing came for 1000 ms')
}

async function synced(log: ReflectorLog<KubeObject>): Promise<void> {
  await log.until(() => log.reflector.hasSynced)
  if (log.events.length !== 3) throw new Error(`three objects, got ${log.events.join()}`)
}

// needs: apiserver
import { CONFIG_MAP, DEPLOYMENT, isConflict, isUidMismatch, type Stored } from '@tutti/kube'
import { type ApiServer, startApiServer, withoutKube } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { openClusterRig } from '../testing/cluster-rig.ts'
import { eventually } from '../testing/eventually.ts'
import { installToys, TOY, type Toy, toyChildren } from '../testing/toy.ts'
import { Applier, type ChildOutcome, type SyncResult, throwIfFailed } from './apply.ts'
import { desiredChild } from './children.ts'

const UNKNOWN = { colour: 'red' }

const results = (result: SyncResult) => result.outcomes.map((outcome) => outcome.result)
const failureOf = (outcome: ChildOutcome | undefined) =>
  outcome?.result === 'failed' || outcome?.result === 'refused' ? outcome.error : undefined

async function openApplier(t: Test, server: ApiServer, spec: Toy['spec'] = { replicas: 3 }) {
  const rig = await openClusterRig(t, server)
  const { caches, client, metrics, namespace, plain } = rig
  const applier = new Applier({
    client,
    caches: [caches.configMaps, caches.deployments, caches.services],
    metrics: metrics.runtime,
  })
  await rig.applyToy('a', spec)
  const key = `${namespace}/a`
  await eventually(caches.toys, () => caches.toys.get(key) !== undefined)
  const owner = (): Stored<Toy> => {
    const toy = caches.toys.get(key)
    if (toy === undefined) throw new Error('the toy is not in its cache')
    return toy
  }
  const { signal } = new AbortController()
  const sync = (desired = toyChildren(owner()), object = owner()) =>
    applier.sync({ resource: TOY, object }, desired, { signal })
  /** Until the caches show what the server has. */
  const caughtUp = async (): Promise<void> => {
    for (const cache of [caches.configMaps, caches.deployments, caches.services]) {
      const { plural } = cache.resource
      const items = await plain.list(rig.path(plural, ''))
      const wanted = items.filter(
        (item) => item['metadata'].labels?.['app.kubernetes.io/managed-by'] === 'tutti-operator',
      )
      await eventually(cache, () => {
        const versions = wanted.map(({ metadata }) => metadata.resourceVersion as string)
        const held = cache.list().map(({ metadata }) => metadata.resourceVersion)
        return versions.toSorted().join() === held.toSorted().join()
      })
    }
  }
  const setSpec = async (next: Toy['spec']): Promise<void> => {
    const { generation } = owner().metadata
    await rig.applyToy('a', next)
    await eventually(caches.toys, () => owner().metadata.generation !== generation)
  }
  return { ...rig, applier, owner, sync, caughtUp, setSpec }
}

await t.test('against a real API server', { skip: withoutKube() }, async (t) => {
  const server = await startApiServer()
  t.teardown(() => server.stop())
  await installToys(server.plain)

  await t.test(
    'children are made once, owned and labelled; the next pass writes nothing',
    async (t) => {
      const rig = await openApplier(t, server, { replicas: 3, text: 'hello', service: 'a-http' })
      t.same(results(await rig.sync()), ['applied', 'applied', 'applied'])
      const writes = rig.proxy.writes.length
      t.equal(writes, 3)
      // The cache may not have seen them yet; nor later does anything change.
      t.same(results(await rig.sync()), ['unchanged', 'unchanged', 'unchanged'])
      await rig.caughtUp()
      t.same(results(await rig.sync()), ['unchanged', 'unchanged', 'unchanged'])
      t.equal(rig.proxy.writes.length, writes)
      const { metadata, spec } = await rig.plain.get(rig.path('deployments', 'a-step'))
      t.match(metadata.labels, {
        'app.kubernetes.io/managed-by': 'tutti-operator',
        'app.kubernetes.io/instance': 'a',
        'app.kubernetes.io/name': 'toy',
      })
      t.match(metadata.ownerReferences, [
        { kind: 'Toy', name: 'a', uid: rig.owner().metadata.uid, controller: true },
      ])
      t.equal(spec.template.spec.containers[0].resources.requests.cpu, '1')
      t.equal(metadata.managedFields[0].manager, 'tutti-operator')
      t.equal(await rig.metrics.read('apply_total{kind="Deployment",result="applied"}'), 1)
      t.equal(await rig.metrics.read('apply_total{kind="Deployment",result="skipped"}'), 2)
      // A new process applies only what the server has written in other words, and changes nothing by it.
      const before = await rig.plain.get(rig.path('deployments', 'a-step'))
      rig.applier.forget(`${rig.namespace}/a`)
      t.same(results(await rig.sync()), ['unchanged', 'unchanged', 'unchanged'])
      t.equal(rig.proxy.writes.length, writes + 1)
      const after = await rig.plain.get(rig.path('deployments', 'a-step'))
      t.equal(after['metadata'].resourceVersion, before['metadata'].resourceVersion)
    },
  )

  await t.test('what others add stays, what they change of ours is put right once', async (t) => {
    const rig = await openApplier(t, server, { replicas: 3, text: 'hello' })
    await rig.sync()
    const path = rig.path('deployments', 'a-step')
    await rig.plain.patch(path, { metadata: { labels: { team: 'x' }, annotations: { note: 'y' } } })
    await rig.plain.patch(rig.path('configmaps', 'a-text'), { data: { more: 'theirs' } })
    await rig.caughtUp()
    const writes = rig.proxy.writes.length
    t.same(results(await rig.sync()), ['unchanged', 'unchanged'])
    t.equal(rig.proxy.writes.length, writes)
    await rig.plain.patch(path, { spec: { replicas: 9 } })
    await rig.plain.patch(rig.path('configmaps', 'a-text'), { data: { text: 'theirs' } })
    await rig.caughtUp()
    t.same(results(await rig.sync()), ['repaired', 'repaired'])
    t.same(results(await rig.sync()), ['unchanged', 'unchanged'])
    const deployment = await rig.plain.get(path)
    t.equal(deployment['spec'].replicas, 3)
    t.match(deployment['metadata'], { labels: { team: 'x' }, annotations: { note: 'y' } })
    const configMap = await rig.plain.get(rig.path('configmaps', 'a-text'))
    t.same(configMap['data'], { text: 'hello', more: 'theirs' })
  })

  await t.test('a child that is deleted by hand is made again, once', async (t) => {
    const rig = await openApplier(t, server)
    await rig.sync()
    await rig.caughtUp()
    await rig.plain.delete(rig.path('deployments', 'a-step'))
    await rig.caughtUp()
    const writes = rig.proxy.writes.length
    t.same(results(await rig.sync()), ['unchanged', 'applied'])
    t.same(results(await rig.sync()), ['unchanged', 'unchanged'])
    t.equal(rig.proxy.writes.length, writes + 1)
  })

  await t.test(
    'an object of that name that is not ours is left alone, until it goes away',
    async (t) => {
      const rig = await openApplier(t, server)
      const labels = { 'app.kubernetes.io/managed-by': 'tutti-operator' }
      const others = [
        { metadata: {} },
        { metadata: { labels } },
        {
          metadata: {
            labels,
            ownerReferences: [
              { apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'other', controller: true },
            ],
          },
        },
      ]
      const path = rig.path('configmaps', 'a-text')
      for (const { metadata } of others) {
        const made = await rig.plain.create(path.replace('/a-text', ''), {
          metadata: { name: 'a-text', ...metadata },
          data: { text: 'mine' },
        })
        await rig.caughtUp()
        const [outcome, next] = (await rig.sync()).outcomes
        t.equal(outcome?.result, 'nameConflict')
        t.match(outcome, {
          message:
            /^ConfigMap "a-text" is there already with (no controller|the controller Pod "x" \(uid other\)), want Toy "a"/,
        })
        t.match(next?.result, /applied|unchanged/, 'the others go on')
        const { metadata: after } = await rig.plain.get(path)
        t.equal(after.resourceVersion, made['metadata'].resourceVersion)
        await rig.plain.delete(path)
        await rig.caughtUp()
      }
      t.same(results(await rig.sync()), ['applied', 'unchanged'])
      t.equal(await rig.metrics.read('apply_total{kind="ConfigMap",result="conflict"}'), 3)
    },
  )

  await t.test(
    'nothing is made for an owner that is gone, is another by now, or has changed',
    async (t) => {
      const rig = await openApplier(t, server)
      const stale = rig.owner()
      await rig.setSpec({ replicas: 4 })
      const syncStale = (object = stale) => rig.sync(toyChildren(stale), object)
      await t.rejects(syncStale(), /has been edited/)
      await rig.plain.delete(rig.path('toys', 'a'))
      await t.rejects(syncStale(), /is gone/)
      await rig.applyToy('a', { replicas: 3 })
      await t.rejects(syncStale(), /is gone/)
      const ending = { ...stale, metadata: { ...stale.metadata, deletionTimestamp: 'now' } }
      await t.rejects(syncStale(ending), /is being deleted/)
      t.same(rig.proxy.writes, [])
    },
  )

  await t.test('a child that the cache still shows is not made anew by accident', async (t) => {
    const rig = await openApplier(t, server)
    await rig.sync()
    await rig.caughtUp()
    await rig.setSpec({ replicas: 5 })
    rig.proxy.freezeWatches()
    await rig.plain.delete(rig.path('deployments', 'a-step'))
    const [, outcome] = (await rig.sync()).outcomes
    t.ok(isUidMismatch(failureOf(outcome)))
    t.equal((await rig.plain.send('GET', rig.path('deployments', 'a-step'))).status, 404)
    rig.proxy.thawWatches()
    await rig.caughtUp()
    t.same(results(await rig.sync()), ['unchanged', 'applied'])
  })

  await t.test('what is not wanted any more goes, once all that is wanted is there', async (t) => {
    const rig = await openApplier(t, server, { replicas: 1, service: 'one' })
    await rig.sync()
    await rig.caughtUp()
    await rig.setSpec({ replicas: 1, service: 'two' })
    const drop = rig.proxy.addRule({
      path: /services\/two$/,
      method: 'PATCH',
      fault: { type: 'answer', status: 403 },
    })
    const held = await rig.sync()
    t.same(results(held), ['unchanged', 'unchanged', 'failed'])
    t.equal((await rig.plain.send('GET', rig.path('services', 'one'))).status, 200)
    t.throws(() => throwIfFailed(held), /a fault that the test has scripted/)
    drop()
    // Somebody changes it at that very moment: the next pass looks at it again.
    rig.proxy.freezeWatches()
    await rig.plain.patch(rig.path('services', 'one'), { metadata: { labels: { x: 'y' } } })
    const raced = await rig.sync()
    t.ok(isConflict(failureOf(raced.outcomes.at(-1))))
    rig.proxy.thawWatches()
    await rig.caughtUp()
    const done = await rig.sync()
    throwIfFailed(done)
    t.equal((await rig.plain.send('GET', rig.path('services', 'one'))).status, 404)
    await rig.caughtUp()
    const count = rig.proxy.writes.length
    await rig.sync()
    t.equal(rig.proxy.writes.length, count)
  })

  await t.test(
    'what the server refuses for good is told apart from what may succeed',
    async (t) => {
      const rig = await openApplier(t, server)
      const place = { namespace: rig.namespace }
      const wrong = desiredChild(CONFIG_MAP, {
        metadata: { ...place, name: 'Not_A_Name' },
        data: {},
      })
      const unknown = desiredChild(CONFIG_MAP, {
        metadata: { ...place, name: 'unknown' },
        ...UNKNOWN,
      })
      const fine = desiredChild(CONFIG_MAP, { metadata: { ...place, name: 'fine' }, data: {} })
      const result = await rig.sync([wrong, unknown, fine])
      t.same(results(result), ['refused', 'refused', 'applied'])
      throwIfFailed(result)
      t.equal(await rig.metrics.read('apply_total{kind="ConfigMap",result="error"}'), 2)
    },
  )

  await t.test('faults on the way: the same children in the end, each made once', async (t) => {
    const faults = [
      { type: 'answer', status: 429, retryAfter: 0 },
      { type: 'answer', status: 500 },
      { type: 'answer', status: 409 },
      { type: 'answer', status: 504 },
      { type: 'reset' },
      { type: 'lose' },
    ] as const
    for (const fault of faults) {
      const rig = await openApplier(t, server, { replicas: 1, service: 'one' })
      rig.proxy.addRule({ isWrite: true, times: 4, fault })
      rig.proxy.addRule({ method: 'GET', isWatch: false, times: 2, fault })
      for (let pass = 0; pass < 10; pass++) {
        const { outcomes } = await rig.sync()
        if (outcomes.every(({ result }) => result === 'unchanged')) break
      }
      await rig.caughtUp()
      t.same(results(await rig.sync()), ['unchanged', 'unchanged', 'unchanged'], fault.type)
      const { metadata } = await rig.plain.get(rig.path('deployments', 'a-step'))
      t.equal(metadata.generation, 1)
    }
  })

  await t.test('replicas change hands without a jump', async (t) => {
    const rig = await openApplier(t, server, { replicas: 3 })
    const path = rig.path('deployments', 'a-step')
    const replicas = async () => (await rig.plain.get(path))['spec'].replicas as number
    await rig.sync()
    await rig.caughtUp()
    await rig.setSpec({ text: 'scaled by somebody else' })
    await rig.sync()
    t.equal(await replicas(), 3)
    await rig.plain.patch(`${path}/scale`, { spec: { replicas: 7 } })
    await rig.caughtUp()
    await rig.sync()
    t.equal(await replicas(), 7)
    const writes = rig.proxy.writes.length
    await rig.caughtUp()
    t.same(results(await rig.sync()), ['unchanged', 'unchanged'])
    t.equal(rig.proxy.writes.length, writes)
    // And back: what the operator wants again counts.
    await rig.setSpec({ replicas: 2 })
    await rig.sync()
    t.equal(await replicas(), 2)
    await rig.caughtUp()
    await rig.setSpec({ text: 'again' })
    await rig.sync()
    t.equal(await replicas(), 2)
  })

  await t.test('a child waits for those that it needs, others do not', async (t) => {
    const rig = await openApplier(t, server, { replicas: 1, service: 'one' })
    const desired = toyChildren(rig.owner()).map((child) =>
      child.resource === DEPLOYMENT ? { ...child, needs: [CONFIG_MAP] } : child,
    )
    const fault = { type: 'answer', status: 403 } as const
    rig.proxy.addRule({ path: /configmaps/, isWrite: true, times: 1, fault })
    t.same(results(await rig.sync(desired)), ['failed', 'held', 'applied'])
    t.equal((await rig.plain.send('GET', rig.path('deployments', 'a-step'))).status, 404)
    t.same(results(await rig.sync(desired)), ['applied', 'applied', 'unchanged'])
  })

  await t.test('what is being deleted is waited for', async (t) => {
    const rig = await openApplier(t, server)
    await rig.sync()
    const path = rig.path('deployments', 'a-step')
    await rig.plain.patch(path, { metadata: { finalizers: ['test.tutti.dev/hold'] } })
    await rig.plain.delete(path)
    await rig.caughtUp()
    t.same(results(await rig.sync()), ['unchanged', 'terminating'])
    await rig.plain.patch(path, { metadata: { finalizers: null } })
    await rig.caughtUp()
    t.same(results(await rig.sync()), ['unchanged', 'applied'])
    await rig.plain.delete(`/api/v1/namespaces/${rig.namespace}`)
    await rig.plain.delete(path)
    await rig.caughtUp()
    t.same(results(await rig.sync()), ['unchanged', 'terminating'])
  })

  await t.test('an abort ends it', async (t) => {
    const rig = await openApplier(t, server)
    const limit = new AbortController()
    rig.proxy.addRule({ isWrite: true, fault: { type: 'drop' } })
    const syncing = rig.applier.sync(
      { resource: TOY, object: rig.owner() },
      toyChildren(rig.owner()),
      limit,
    )
    limit.abort(new Error('enough'))
    await t.rejects(syncing, /enough/)
  })
})

// needs: apiserver
import type { Stored } from '@tutti/kube'
import { startApiServer, withoutKube } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { openClusterRig } from '../testing/cluster-rig.ts'
import { eventually } from '../testing/eventually.ts'
import { installToys, TOY, type Toy, type ToyStatus } from '../testing/toy.ts'
import { toConditions } from './conditions.ts'
import { StatusWriter } from './status.ts'

const { signal } = new AbortController()
const at = '2026-01-01T00:00:00Z'
const condition = (status: 'True' | 'False', message = 'm') =>
  toConditions(['Ready'], {
    states: { Ready: { status, reason: 'R', message } },
    before: [],
    observedGeneration: 1,
    at,
  })

await t.test('against a real API server', { skip: withoutKube() }, async (t) => {
  const server = await startApiServer()
  t.teardown(() => server.stop())
  await installToys(server.plain)

  const open = async (t: Test) => {
    const rig = await openClusterRig(t, server)
    const { caches, client, metrics, namespace } = rig
    const writer = new StatusWriter({ client, metrics: metrics.runtime })
    await rig.applyToy('a', { replicas: 1 })
    const key = `${namespace}/a`
    await eventually(caches.toys, () => caches.toys.get(key) !== undefined)
    const toy = (): Stored<Toy> => {
      const found = caches.toys.get(key)
      if (found === undefined) throw new Error('the toy is not in its cache')
      return found
    }
    const write = (status: ToyStatus, object = toy()) =>
      writer.write({ resource: TOY, object, status }, { signal })
    const live = () => rig.plain.get(rig.path('toys', 'a'))
    const caughtUp = async (): Promise<void> => {
      const { metadata } = await live()
      await eventually(
        caches.toys,
        () => toy().metadata.resourceVersion === metadata.resourceVersion,
      )
    }
    return { ...rig, writer, toy, write, live, caughtUp, key }
  }

  await t.test('it is written when it differs, and not again', async (t) => {
    const rig = await open(t)
    t.equal(await rig.write({}), 'unchanged', 'no status is an empty one')
    await rig.write({ text: 'old' })
    await rig.caughtUp()
    const status = { observedGeneration: 1, conditions: condition('False') }
    rig.proxy.freezeWatches()
    t.equal(await rig.write(status), 'written')
    t.equal(await rig.write(status), 'unchanged', 'the cache has not seen it yet')
    t.same(rig.writer.current(rig.toy()), status)
    // Back to what the stale cache still shows is a change, too.
    t.equal(await rig.write({ text: 'old' }), 'written')
    t.equal(await rig.write(status), 'written')
    rig.proxy.thawWatches()
    await rig.caughtUp()
    t.same(rig.writer.current(rig.toy()), status)
    t.equal(await rig.write(status), 'unchanged')
    rig.writer.forget(rig.key)
    t.equal(await rig.write(status), 'unchanged', 'a new process writes nothing either')
    t.equal(rig.proxy.writes.length, 4)
    t.equal(await rig.metrics.read('status_writes_total{kind="Toy",result="written"}'), 4)
    t.equal(await rig.metrics.read('status_writes_total{kind="Toy",result="unchanged"}'), 4)
  })

  await t.test('what is left out goes away, conditions of others stay', async (t) => {
    const rig = await open(t)
    await rig.write({ observedGeneration: 1, text: 'x', conditions: condition('True') })
    await rig.plain.apply(
      `${rig.path('toys', 'a')}/status`,
      {
        apiVersion: 'test.tutti.dev/v1',
        kind: 'Toy',
        metadata: { name: 'a' },
        status: { conditions: [{ type: 'Theirs', status: 'True' }] },
      },
      'somebody',
    )
    await rig.caughtUp()
    const status = { observedGeneration: 1, conditions: condition('False') }
    t.equal(await rig.write(status), 'written')
    await rig.caughtUp()
    t.equal(await rig.write(status), 'unchanged')
    const live = (await rig.live())['status']
    t.equal(live.text, undefined)
    const types = live.conditions.map((one: { type: string; status: string }) => [
      one.type,
      one.status,
    ])
    t.same(Object.fromEntries(types), { Ready: 'False', Theirs: 'True' })
    // Somebody who changes ours is put right.
    await rig.plain.patch(`${rig.path('toys', 'a')}/status`, { status: { text: 'theirs' } })
    await rig.plain.patch(`${rig.path('toys', 'a')}/status`, { status: { observedGeneration: 9 } })
    await rig.caughtUp()
    t.equal(await rig.write(status), 'written')
    t.equal((await rig.live())['status'].observedGeneration, 1)
  })

  await t.test('an object that is gone, or is another by now, gets none', async (t) => {
    const rig = await open(t)
    const stale = rig.toy()
    await rig.plain.delete(rig.path('toys', 'a'))
    t.equal(await rig.write({ text: 'x' }, stale), 'gone')
    await rig.applyToy('a', { replicas: 1 })
    await t.rejects(rig.write({ text: 'x' }, stale), /modified/)
    t.equal((await rig.live())['status'], undefined)
  })

  await t.test('what has changed meanwhile is a conflict', async (t) => {
    const rig = await open(t)
    const old = rig.toy()
    await rig.applyToy('a', { replicas: 2 })
    await t.rejects(rig.write({ observedGeneration: 1 }, old), /modified/)
    await rig.caughtUp()
    t.equal(await rig.write({ observedGeneration: 2 }), 'written')
  })

  await t.test('what does not fit into the object is an error that says so', async (t) => {
    const rig = await open(t)
    await rig.applyToy('a', { replicas: 1, text: 'x'.repeat(1_300_000) })
    await rig.caughtUp()
    await t.rejects(rig.write({ text: 'y'.repeat(300_000) }), /request is too large/)
  })

  await t.test('a failure is thrown, and the next pass writes it', async (t) => {
    const rig = await open(t)
    for (const status of [409, 500]) {
      const end = rig.proxy.addRule({ isWrite: true, fault: { type: 'answer', status } })
      await t.rejects(rig.write({ text: `${status}` }), /scripted/)
      end()
      t.equal(await rig.write({ text: `${status}` }), 'written')
    }
    rig.proxy.addRule({ isWrite: true, times: 1, fault: { type: 'lose' } })
    const outcome = await rig.write({ text: 'lost' }).catch(() => 'failed')
    t.match(outcome, /written|failed/)
    await rig.caughtUp()
    t.equal(await rig.write({ text: 'lost' }), 'unchanged')
  })
})

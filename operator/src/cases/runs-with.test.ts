// needs: apiserver
import { type PlainObject, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { type CasePlace, openCaseRig } from '../testing/case-rig.ts'
import { isGone } from '../testing/namespaced.ts'
import { podsOf, untilPodsOf } from '../testing/pods-of-model.ts'

const NEEDED = ['kube-controller-manager', 'kube-scheduler'] as const

const deployment = ({ path }: CasePlace, model: string): string =>
  path('deployments', `${model}-step`)

/** Makes the test whether a Deployment has a Model no longer in its pods. */
const isWithout = (model: string) => (one: PlainObject | undefined) =>
  one?.['metadata'].labels[`model.tutti.dev/${model}`] === undefined

const setSpec = ({ plain, path }: CasePlace, model: string, spec: PlainObject) =>
  plain.patch(path('models', model), { spec })

await t.test('Models in the pods of another', { skip: withoutKube(...NEEDED) }, async (t) => {
  const rig = await openCaseRig(t)
  const { plain } = rig.server

  await t.test('in whatever order they were applied, one Deployment has both', async (t) => {
    const place = await rig.openPlace()
    const operator = await place.startOperator(t)
    await place.applyModel('guest', { runsWith: 'host' })
    const early = await place.condition('models', 'guest', 'Accepted=False/HostNotFound')
    t.match(early['status'].conditions[0].message, /runsWith: got "host"/)
    await place.applyModel('host')
    await place.ready('models', 'host')
    const guest = await place.ready('models', 'guest')
    t.match(guest['status'], {
      podsReady: '1/1',
      revisions: [{ version: 1, replicas: 1 }],
      selector: /tutti.dev\/model=host/,
    })
    await untilPodsOf(place, 'guest', { label: 'model', hosts: ['host'] })
    await untilPodsOf(place, 'host', { label: 'model', hosts: ['host'] })
    t.equal(await plain.until(deployment(place, 'guest'), isGone), undefined)
    await operator.atRest()
    const before = operator.proxy.writes.length
    await setSpec(place, 'guest', { maxBatchSize: 2 })
    await plain.until(
      place.path('models', 'guest'),
      (one) =>
        one?.['status'].revisions?.length === 1 && one['status'].signature?.maxBatchSize === 2,
    )
    await place.ready('models', 'guest')
    await place.ready('models', 'host')
    await operator.atRest()
    t.ok(operator.proxy.writes.length - before < 60, 'it comes to rest')
  })

  await t.test('one that moves is served at each moment, in and out', async (t) => {
    const place = await rig.openPlace()
    await place.startOperator(t)
    await place.applyModel('host')
    await place.applyModel('guest')
    await place.ready('models', 'host')
    await place.ready('models', 'guest')
    const served = await watchServed(place, 'guest')
    await setSpec(place, 'guest', { runsWith: 'host' })
    await plain.until(deployment(place, 'guest'), isGone, 60_000)
    await place.ready('models', 'guest')
    await untilPodsOf(place, 'guest', { label: 'model', hosts: ['host'] })
    await setSpec(place, 'guest', { runsWith: null })
    await plain.until(deployment(place, 'host'), isWithout('guest'), 60_000)
    await place.ready('models', 'guest')
    await place.ready('models', 'host')
    t.same(await served.end(), [], 'there was always a ready pod that serves it')
  })

  await t.test('a host that is held says so to its guests, and they to it', async (t) => {
    const place = await rig.openPlace()
    await place.startOperator(t)
    await place.applyModel('host')
    await place.applyModel('guest', { runsWith: 'host' })
    await place.ready('models', 'guest')
    await setSpec(place, 'host', { paused: true })
    const held = await place.condition('models', 'guest', 'Progressing=False/Paused')
    t.match(
      held['status'].conditions.find((one: PlainObject) => one['type'] === 'Progressing').message,
      'Model "host", in whose pods it runs: spec.paused',
    )
    await setSpec(place, 'host', { paused: null })
    await place.condition('models', 'guest', 'Progressing=False/Complete')
    const storage = { secretRef: { name: 'later' } }
    await setSpec(place, 'guest', { storage })
    await place.condition('models', 'guest', 'ArtifactsReady=False/SecretNotFound')
    await place.condition('models', 'host', 'Progressing=False/SecretNotFound')
    t.equal((await podsOf(place, 'guest')).length, 1, 'what ran goes on')
    await plain.create(place.path('secrets'), { metadata: { name: 'later' } })
    await place.ready('models', 'guest')
    await place.ready('models', 'host')
  })

  await t.test('circles, chains, itself and own pod fields are refused', async (t) => {
    const place = await rig.openPlace()
    await place.startOperator(t)
    await place.applyModel('itself', { runsWith: 'itself' })
    await place.condition('models', 'itself', 'Accepted=False/HostInvalid')
    await place.applyModel('one', { runsWith: 'two' })
    await place.applyModel('two', { runsWith: 'one' })
    await place.condition('models', 'one', 'Accepted=False/HostInvalid')
    await place.condition('models', 'two', 'Accepted=False/HostInvalid')
    t.equal((await podsOf(place, 'one')).length, 0)
    await t.rejects(
      place.applyModel('own', { runsWith: 'one', accelerator: {} }),
      /got it beside accelerator/,
    )
    await t.rejects(
      place.applyModel('own', { runsWith: 'one', scaling: { maxReplicas: 2 } }),
      /got it beside scaling/,
    )
  })

  await t.test(
    'a guest that goes leaves the pods, a host that goes takes them along',
    async (t) => {
      const place = await rig.openPlace()
      await place.startOperator(t)
      await place.applyModel('host')
      await place.applyModel('guest', { runsWith: 'host' })
      await place.applyModel('other', { runsWith: 'host' })
      await place.ready('models', 'guest')
      await place.ready('models', 'other')
      await plain.delete(place.path('models', 'other'))
      await plain.until(deployment(place, 'host'), isWithout('other'))
      await place.ready('models', 'host')
      await plain.delete(place.path('models', 'host'))
      await place.condition('models', 'guest', 'Accepted=False/HostNotFound')
      await setSpec(place, 'guest', { runsWith: null })
      await place.ready('models', 'guest')
    },
  )
})

/** Watches whether some ready pod serves a Model. @returns a function that ends this with the moments at which none did. */
async function watchServed(place: CasePlace, model: string) {
  const gaps: string[] = []
  const looked = { isOver: false }
  const watching = (async () => {
    while (!looked.isOver) {
      const pods = await podsOf(place, model)
      const isServed = pods.some((pod) =>
        pod['status'].conditions?.some(
          (one: PlainObject) => one['type'] === 'Ready' && one['status'] === 'True',
        ),
      )
      if (!isServed) gaps.push(JSON.stringify(pods.map(({ metadata }) => metadata.name)))
    }
  })()
  return {
    end: async (): Promise<readonly string[]> => {
      looked.isOver = true
      await watching
      return gaps
    },
  }
}

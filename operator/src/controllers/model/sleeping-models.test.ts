// needs: apiserver
import { parseSleepMark, SLEEP_ANNOTATION } from '@tutti/api'
import { type PlainObject, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import {
  conditionOf,
  deploymentPath,
  isModelReady,
  openModelCluster,
} from '../../testing/model-cluster.ts'

t.setTimeout(120_000)

const isAsleep = (model: Parameters<typeof conditionOf>[0]): boolean =>
  conditionOf(model, 'Ready') === 'True/Asleep' && model['status'].replicas === 0

const isRefused = (model: Parameters<typeof conditionOf>[0]): boolean =>
  conditionOf(model, 'ArtifactsReady') === 'False/SecretNotFound'

const revisionsOf = (namespace: string) =>
  `/apis/apps/v1/namespaces/${namespace}/controllerrevisions`
const toMark = (revision: PlainObject | undefined) => {
  const text = revision?.['metadata'].annotations?.[SLEEP_ANNOTATION]
  return text === undefined ? undefined : parseSleepMark(text)
}

await t.test('with a real API server', { skip: withoutKube() }, async (t) => {
  const cluster = await openModelCluster(t)
  const { plain } = cluster
  const scaling = { minReplicas: 0, idleAfter: '1s' }
  /** The terms that routers find in the newest accepted revision of a Model, once they are as a test wants them. */
  const untilMark = async (
    namespace: string,
    fits: (mark: ReturnType<typeof toMark>) => boolean,
  ) => {
    const { items } = await plain.get(revisionsOf(namespace))
    const [newest] = items.toSorted(
      (a: PlainObject, b: PlainObject) => b['revision'] - a['revision'],
    )
    const path = `${revisionsOf(namespace)}/${newest.metadata.name}`
    return toMark(await plain.until(path, (revision) => fits(toMark(revision))))
  }
  const replicas = async (namespace: string): Promise<number> =>
    (await plain.get(deploymentPath(namespace, 'yolo')))['spec'].replicas

  await t.test('a Model for which no request comes has no pods, and is ready', async (t) => {
    const namespace = await cluster.namespace()
    await cluster.applyModel(namespace, 'yolo', { scaling, timeouts: { load: '90s' } })
    await cluster.untilModel(namespace, 'yolo', isModelReady)
    const asleep = await cluster.untilModel(namespace, 'yolo', isAsleep)
    t.equal(conditionOf(asleep, 'WorkloadAvailable'), 'True/Asleep')
    t.equal(conditionOf(asleep, 'Routable'), 'True/Held')
    t.equal(conditionOf(asleep, 'SchemaVerified'), 'True/Discovered')
    t.equal(conditionOf(asleep, 'Degraded'), 'False/AsExpected')
    t.match(asleep['status'], { podsReady: '0/0', desiredReplicas: 0 })
    t.same(await untilMark(namespace, (mark) => mark !== undefined), { loadMs: 90_000 })

    cluster.plays.set('yolo', { kind: 'status', status: { phase: 'Pending' } })
    cluster.player.want(namespace, 'yolo')
    const waking = await cluster.untilModel(
      namespace,
      'yolo',
      (model) => model['status'].start?.waitsFor === 'Image',
    )
    t.equal(conditionOf(waking, 'Ready'), 'True/Waking', 'its requests wait')
    t.equal(await replicas(namespace), 1)
    const mark = await untilMark(namespace, (one) => one?.start?.startsWith('pod ') === true)
    t.match(mark?.start, /^pod "yolo-step-.*" waits for image and volumes of container /)
    cluster.plays.delete('yolo')
    const pods = `/api/v1/namespaces/${namespace}/pods`
    const { items } = await plain.get(`${pods}?labelSelector=tutti.dev/model=yolo`)
    for (const { metadata } of items) await plain.delete(`${pods}/${metadata.name}`)
    const awake = await cluster.untilModel(namespace, 'yolo', isModelReady)
    t.match(awake['status'], { podsReady: '1/1' })
    await untilMark(namespace, (one) => one?.start === undefined)
    // As long as requests wait, and for a second after them, it does not sleep again.
    cluster.player.want(namespace)
    await cluster.untilModel(namespace, 'yolo', isAsleep)
  })

  await t.test('an edit starts a Model that sleeps once, to be checked', async (t) => {
    const namespace = await cluster.namespace()
    await cluster.applyModel(namespace, 'yolo', { scaling })
    await cluster.untilModel(namespace, 'yolo', isAsleep)
    await cluster.applyModel(namespace, 'yolo', { scaling, maxBatchSize: 2 })
    await cluster.untilModel(namespace, 'yolo', isModelReady)
    await cluster.untilModel(namespace, 'yolo', isAsleep)
    await cluster.applyModel(namespace, 'yolo', { scaling: {}, maxBatchSize: 2 })
    await cluster.untilModel(namespace, 'yolo', isModelReady)
    t.equal(await replicas(namespace), 1)
    t.equal(await untilMark(namespace, (mark) => mark === undefined), undefined)
  })

  await t.test(
    'requests wait on for a Model that may sleep no longer, until a pod serves',
    async (t) => {
      const namespace = await cluster.namespace()
      await cluster.applyModel(namespace, 'yolo', { scaling })
      await cluster.untilModel(namespace, 'yolo', isAsleep)
      cluster.plays.set('yolo', { kind: 'status', status: { phase: 'Pending' } })
      await cluster.applyModel(namespace, 'yolo', { scaling: {} })
      const mark = await untilMark(
        namespace,
        (one) => one === undefined || one.start?.startsWith('pod ') === true,
      )
      t.match(mark?.start, /^pod "yolo-step-.*" waits for /)
      cluster.plays.delete('yolo')
      const pods = `/api/v1/namespaces/${namespace}/pods`
      const { items } = await plain.get(`${pods}?labelSelector=tutti.dev/model=yolo`)
      for (const { metadata } of items) await plain.delete(`${pods}/${metadata.name}`)
      await cluster.untilModel(namespace, 'yolo', isModelReady)
      t.equal(await untilMark(namespace, (one) => one === undefined), undefined)
    },
  )

  await t.test(
    'no request waits for a refused Model, which is tried once it is mended',
    async (t) => {
      const namespace = await cluster.namespace()
      await cluster.applyModel(namespace, 'yolo', { scaling })
      await cluster.untilModel(namespace, 'yolo', isAsleep)
      const storage = { storageUri: 's3://bucket/yolo', storage: { secretRef: { name: 'aws' } } }
      await cluster.applyModel(namespace, 'yolo', { scaling, ...storage })
      await cluster.untilModel(namespace, 'yolo', isRefused)
      t.equal(await untilMark(namespace, (mark) => mark === undefined), undefined)
      t.equal(await replicas(namespace), 0)
      const secret = { metadata: { name: 'aws' }, stringData: { AWS_ACCESS_KEY_ID: 'k' } }
      await plain.create(`/api/v1/namespaces/${namespace}/secrets`, secret)
      await cluster.untilModel(namespace, 'yolo', isModelReady)
      await cluster.untilModel(namespace, 'yolo', isAsleep)
    },
  )

  await t.test('Models in the same pods sleep and wake together', async (t) => {
    const namespace = await cluster.namespace()
    await cluster.applyModel(namespace, 'yolo', { scaling })
    await cluster.applyModel(namespace, 'guest', { runsWith: 'yolo' })
    await cluster.untilModel(namespace, 'guest', isModelReady)
    for (const name of ['yolo', 'guest']) await cluster.untilModel(namespace, name, isAsleep)
    cluster.player.want(namespace, 'guest')
    for (const name of ['guest', 'yolo']) await cluster.untilModel(namespace, name, isModelReady)
    t.equal(await replicas(namespace), 1)
    cluster.player.want(namespace)
    await cluster.untilModel(namespace, 'yolo', isAsleep)
    await cluster.applyModel(namespace, 'guest', { runsWith: 'yolo', maxBatchSize: 2 })
    await cluster.untilModel(namespace, 'guest', isModelReady)
  })

  await t.test('a Model that is called does not sleep', async (t) => {
    const namespace = await cluster.namespace()
    cluster.load = { inFlight: 0, queued: 0, slots: 1, requests: 0 }
    await cluster.applyModel(namespace, 'yolo', { scaling })
    await cluster.untilModel(namespace, 'yolo', isModelReady)
    const from = cluster.player.asked
    // A count that grows at each look, of requests that have ended when it looks.
    Object.defineProperty(cluster, 'load', {
      get: () => ({ inFlight: 0, queued: 0, slots: 1, requests: cluster.player.asked }),
      configurable: true,
    })
    await cluster.player.untilAsked(from + 20)
    t.equal(await replicas(namespace), 1)
  })
})

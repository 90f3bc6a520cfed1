import { ensembleManifest, modelManifest } from '@tutti/api/testing'
import { type KubeObject, toKeyString } from '@tutti/kube'
import t from 'tap'
import { ENSEMBLE, MODEL } from '../../api/kinds.ts'
import { memoryClient } from '../../testing/memory-client.ts'
import { openCaches, openReconcile, serve } from '../../testing/validation/check-in-memory.ts'

const tensor = (name: string) => ({ name, datatype: 'FP32', shape: [4] })
const key = toKeyString({ namespace: 'ns', name: 'ens' })

/** The status of a Model without pods. */
const saying = (status: string, reason: string) => ({
  readyReplicas: 0,
  conditions: [{ type: 'Ready', status, reason, message: reason, observedGeneration: 1 }],
})

await t.test('an Ensemble stays Ready while routers hear of a change of its Model', async (t) => {
  const client = memoryClient()
  const caches = openCaches(client)
  let accepted: readonly string[] = []
  const ages: number[] = []
  const reconcile = openReconcile(client, caches, {
    // oxlint-disable-next-line typescript/require-await -- it asks no router
    look: async (_namespace, { maxAgeMs }) => {
      ages.push(maxAgeMs)
      return [{ pod: 'r1', served: { models: [], accepted: [...accepted] } }]
    },
  })
  const metadata = { namespace: 'ns', uid: 'u', generation: 1 }
  const serveModel = (outputs: readonly object[], told: object = { readyReplicas: 1 }): void => {
    const model = modelManifest('m', { inputs: [tensor('x')], outputs })
    const status = { latestReadyRevision: 'r', ...told }
    client.put<KubeObject>(MODEL, {
      ...model,
      metadata: { ...metadata, name: 'm' },
      status,
    } as KubeObject)
    for (const stored of caches.models.list()) serve(client, stored)
  }
  const ready = () =>
    caches.ensembles.get(key)?.status?.conditions?.find(({ type }) => type === 'Ready')
  const names = () =>
    caches.revisions
      .list()
      .flatMap(({ metadata: { name } }) => (name.startsWith('ens') ? [name] : []))
  serveModel([tensor('y')])
  const ensemble = ensembleManifest('ens')
  client.put<KubeObject>(ENSEMBLE, {
    ...ensemble,
    metadata: { ...metadata, name: 'ens', uid: 'e' },
  })
  t.same(await reconcile(key), { requeueAfterMs: 300 })
  t.match(ready(), { status: 'False', reason: 'NotRouted' })
  accepted = names()
  await reconcile(key)
  t.match(ready(), { status: 'True' })

  serveModel([tensor('y'), tensor('z')])
  const asked = ages.length
  t.same(await reconcile(key), { requeueAfterMs: 300 }, 'routers get a moment')
  t.equal(names().length, 2)
  t.match(ready(), { status: 'True' })
  accepted = names()
  t.same(await reconcile(key), {})
  t.match(ready(), { status: 'True' })
  await reconcile(key)
  t.same(ages.slice(asked), [200, 60_000], 'answers are new until the routers serve it')

  serveModel([tensor('y'), tensor('z')], saying('True', 'Asleep'))
  await reconcile(key)
  t.match(ready(), { status: 'True' }, 'a Model that sleeps is ready without pods')
  serveModel([tensor('y'), tensor('z')], saying('False', 'ModelLoadFailed'))
  await reconcile(key)
  t.match(ready(), { status: 'False', reason: 'ModelLoadFailed' })
})

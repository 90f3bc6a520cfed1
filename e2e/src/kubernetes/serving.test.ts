// needs: nats, apiserver, python, torch
import type { PlainObject } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { serve } from '../serving.ts'
import { tempFolder } from '../temp-repository.ts'
import { PYTHON, runPythonChecks, TORCH_PYTHON } from '../triton-client.ts'
import { showAccelerator } from './accelerator-shows.ts'
import { pathOf, startCluster, withoutCluster } from './cluster.ts'
import { openTwoRouters, showFirstRequests } from './first-requests.ts'
import { importManifests, servedName } from './import-manifests.ts'
import { showLostNode } from './node-shows.ts'
import {
  type CheckModels,
  makeStorageRepository,
  showStorage,
  storedModels,
} from './storage-shows.ts'
import { showTenancy } from './tenancy-shows.ts'

t.setTimeout(900_000)

const SKIP = withoutCluster() || (PYTHON === undefined && 'TUTTI_TEST_PYTHON is not set')
/** Models, and as many Ensembles; the soak has ten times as many. */
const FIRST_REQUESTS = 10

await t.test('Models and Ensembles on one cluster', { skip: SKIP }, async (t) => {
  const repository = await makeStorageRepository(t)
  const results = await tempFolder(t)
  const checkAt = (t: Test, grpc: string, http: string, models: readonly string[]): Promise<void> =>
    runPythonChecks(t, 'served_models.py', [
      `--grpc=${grpc}`,
      `--http=${http}`,
      `--results=${results}`,
      ...models,
    ])
  const check: CheckModels = (t, models, router) =>
    checkAt(t, `${router}:8001`, `${router}:8000`, models)
  await t.test('in one process', async (t) => {
    const flags =
      TORCH_PYTHON === undefined ? [] : [`--backend-config=pytorch,interpreter=${TORCH_PYTHON}`]
    const { grpcPort, httpPort } = await serve(t, { repositories: [repository], flags })
    await checkAt(t, `127.0.0.1:${grpcPort}`, `127.0.0.1:${httpPort}`, storedModels())
  })
  const cluster = await startCluster(t)
  const manifests = await importManifests(repository)
  await cluster.createNamespace('team-b', repository, 'privileged')
  const stored = { cluster, namespace: 'team-b', repository, manifests, check }
  await t.test('where files come from', (t) => showStorage(t, stored))

  const simple = ['add_one_batch', 'ens_chain']
  const checkSimple = async (t: Test, namespace: string): Promise<void> =>
    check(t, simple, await cluster.routerOf(namespace))
  await t.test('a namespace that takes no volumes of the node says so', async (t) => {
    await openTwoRouters({ cluster, namespace: 'team' }, repository)
    const wanted = manifests.filter((one) => simple.includes(servedName(one)))
    await cluster.apply('team', wanted)
    for (const manifest of wanted) await cluster.untilReady('team', manifest)
    await checkSimple(t, 'team')
    const refused = modelOf('of-the-node', `hostPath://${repository}/sum_batch`)
    await cluster.apply('team', [refused])
    const { status } = await cluster.untilSays('team', refused, 'Ready=False/FailedCreate')
    t.match(status.lastFailure.message, /violates PodSecurity "restricted.*hostPath/)
    await cluster.api.plain.delete(pathOf('team', refused))
  })

  await t.test('a model that cannot be loaded says why, though its process is ready', async (t) => {
    const misnamed = modelOf('misnamed', 'pvc://models/add_one_batch')
    await cluster.apply('team', [misnamed])
    const { status } = await cluster.untilSays('team', misnamed, 'Degraded=True/ModelLoadFailed')
    t.match(status.lastFailure.message, /'misnamed' for model 'add_one_batch'/)
    await cluster.untilSays('team', misnamed, 'Ready=False/ModelLoadFailed')
    await cluster.api.plain.delete(pathOf('team', misnamed))
  })

  await t.test('a model with an accelerator does not execute on the CPU', (t) =>
    showAccelerator(t, { cluster, namespace: 'team' }),
  )

  await t.test(`the first requests to ${FIRST_REQUESTS} Models and as many Ensembles`, (t) =>
    showFirstRequests(t, { cluster, namespace: 'team' }, FIRST_REQUESTS),
  )

  await t.test('what the credential of a namespace permits', (t) =>
    showTenancy(t, {
      cluster,
      own: 'team',
      other: 'team-b',
      answers: async (t) => {
        for (const namespace of ['team', 'team-b']) await checkSimple(t, namespace)
      },
    }),
  )

  await t.test('a node is lost', (t) => showLostNode(t, { cluster, namespace: 'team' }))
})

function modelOf(name: string, storageUri: string): PlainObject {
  return {
    apiVersion: 'tutti.dev/v1alpha1',
    kind: 'Model',
    metadata: { name },
    spec: { modelFormat: { name: 'onnx' }, storageUri },
  }
}

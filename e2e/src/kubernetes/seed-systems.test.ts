// needs: nats, apiserver, python
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import type { PlainObject } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { FACE_MODELS, OCR, OCR_MODELS, SAMPLES } from '../seed-systems.ts'
import { serve } from '../serving.ts'
import { tempFolder } from '../temp-repository.ts'
import { PYTHON, PYTHON_FLAGS, runPythonChecks } from '../triton-client.ts'
import { until } from '../until.ts'
import { pathOf, startCluster, type TuttiCluster, withoutCluster } from './cluster.ts'
import { importManifests, servedName } from './import-manifests.ts'

t.setTimeout(900_000)

const SKIP = withoutCluster() || (PYTHON === undefined && 'TUTTI_TEST_PYTHON is not set')

/** Both systems, the face's with ONNX files. */
async function makeRepository(t: Test): Promise<string> {
  const folder = await tempFolder(t)
  for (const model of [...FACE_MODELS, ...OCR_MODELS]) {
    await cp(join(OCR, model), join(folder, model), { recursive: true })
  }
  return folder
}

interface Systems {
  readonly name: 'face' | 'ocr'
  readonly models: readonly string[]
  readonly manifests: readonly PlainObject[]
}

function toSystem(
  name: Systems['name'],
  models: readonly string[],
  manifests: readonly PlainObject[],
): Systems {
  const isIts = (manifest: PlainObject): boolean => models.includes(servedName(manifest))
  return { name, models, manifests: manifests.filter(isIts) }
}

await t.test('both published systems as manifests', { skip: SKIP }, async (t) => {
  const repository = await makeRepository(t)
  const results = await tempFolder(t)
  const check = (t: Test, host: string, ports: readonly number[], systems: string) =>
    runPythonChecks(t, 'served_systems.py', [
      `--grpc=${host}:${ports[0]}`,
      `--http=${host}:${ports[1]}`,
      `--samples=${SAMPLES}`,
      `--results=${results}`,
      `--systems=${systems}`,
    ])
  await t.test('in one process', async (t) => {
    const serving = await serve(t, { repositories: [repository], flags: PYTHON_FLAGS })
    await check(t, '127.0.0.1', [serving.grpcPort, serving.httpPort], 'both')
  })
  const all = await importManifests(repository)
  const cluster = await startCluster(t)
  await cluster.createNamespace('team', repository)
  for (const system of [toSystem('face', FACE_MODELS, all), toSystem('ocr', OCR_MODELS, all)]) {
    const { name, manifests, models } = system
    await t.test(`${name} reaches Ready, and gives the same bytes at once`, async (t) => {
      t.equal(manifests.length, models.length)
      await cluster.apply('team', manifests)
      for (const manifest of manifests) await cluster.untilReady('team', manifest)
      await check(t, await cluster.routerOf('team'), [8001, 8000], name)
    })
  }
  await t.test('requests go on without the operator, then without the API server', async (t) => {
    const router = await cluster.routerOf('team')
    await cluster.stopOperator()
    await check(t, router, [8001, 8000], 'face')
    await cluster.api.kill()
    await check(t, router, [8001, 8000], 'face')
    await cluster.api.restart()
    await cluster.startOperator()
  })
  await t.test('what is deleted leaves nothing', async (t) => {
    await removeAll(t, cluster, all)
  })
})

async function removeAll(
  t: Test,
  { api, kubelet }: TuttiCluster,
  manifests: readonly PlainObject[],
): Promise<void> {
  const { plain } = api
  for (const manifest of manifests) await plain.delete(pathOf('team', manifest))
  const listed = [
    '/api/v1/namespaces/team/pods',
    '/api/v1/namespaces/team/services',
    '/api/v1/namespaces/team/secrets',
    '/apis/apps/v1/namespaces/team/deployments',
    '/apis/apps/v1/namespaces/team/controllerrevisions',
    '/apis/policy/v1/namespaces/team/poddisruptionbudgets',
    '/apis/networking.k8s.io/v1/namespaces/team/networkpolicies',
  ]
  for (const path of listed) {
    let left: readonly string[] = []
    await until(
      () => `${path} are gone: ${left.join(', ')}`,
      async () => {
        left = (await plain.list(path)).map(({ metadata }) => metadata.name)
        return left.length === 0
      },
    )
  }
  t.match(kubelet.linesOf('team', '').join('\n'), /"message":"drained"/)
}

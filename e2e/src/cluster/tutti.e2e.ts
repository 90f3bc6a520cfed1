import { chmod, cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createTestCertificates } from '@tutti/chassis/testing'
import type { PlainObject } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { CHART } from '../chart/helm.ts'
import { importManifests } from '../kubernetes/import-manifests.ts'
import { FACE_MODELS, OCR, SAMPLES } from '../seed-systems.ts'
import { ROOT, serve } from '../serving.ts'
import { tempFolder } from '../temp-repository.ts'
import { runPythonChecks } from '../triton-client.ts'
import {
  apply,
  createNamespace,
  getObject,
  INGRESS,
  kubectl,
  NODE_ADDRESS,
  runKubeProgram,
  withoutTuttiImages,
} from './kubectl.ts'

t.setTimeout(1_200_000)

const SYSTEM = 'tutti-system'
const SPACE = 'team'
const HOST = 'face.test'
const READY = '--timeout=180s'

const helm = (...args: readonly string[]): Promise<string> =>
  runKubeProgram('helm', [...args, `--namespace=${SYSTEM}`])

/** A folder of this machine, which the node sees too, as the claim `models`. */
async function createClaim(folder: string): Promise<void> {
  const common = { accessModes: ['ReadWriteMany'], storageClassName: '' }
  const size = { storage: '1Gi' }
  await apply(
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: `${SPACE}-models` },
      spec: { ...common, capacity: size, hostPath: { path: folder } },
    },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace: SPACE, name: 'models' },
      spec: { ...common, volumeName: `${SPACE}-models`, resources: { requests: size } },
    },
  )
}

/** The face system; pods are others than root. */
async function makeRepository(t: Test): Promise<string> {
  const folder = await tempFolder(t)
  await chmod(folder, 0o755)
  for (const model of FACE_MODELS) {
    await cp(join(OCR, model), join(folder, model), { recursive: true })
  }
  return folder
}

function expose(manifest: PlainObject): PlainObject {
  const { kind, metadata, spec } = manifest
  const tls = [{ hosts: [HOST], secretName: 'edge' }]
  const exposed = { ...spec, expose: { ingress: { className: 'traefik', hosts: [HOST], tls } } }
  return {
    ...manifest,
    metadata: { ...metadata, namespace: SPACE },
    spec: kind === 'Ensemble' ? exposed : spec,
  }
}

await t.test('Tutti on the cluster', { skip: withoutTuttiImages() }, async (t) => {
  const repository = await makeRepository(t)
  const results = await tempFolder(t)
  const certificates = await tempFolder(t)
  const { caFile, certFile, keyFile } = await createTestCertificates(certificates, [`DNS:${HOST}`])
  const hosts = join(certificates, 'hosts')
  await writeFile(hosts, `127.0.0.1 localhost\n${NODE_ADDRESS} ${HOST}\n`)
  await createNamespace(t, SPACE)
  const checks = [`--samples=${SAMPLES}`, `--results=${results}`, '--systems=face']

  await t.test('helm installs it', async (t) => {
    const values = `--values=${ROOT}e2e/cluster/values.yaml`
    const install = ['upgrade', '--install', 'tutti', CHART, values, '--create-namespace']
    t.match(await helm(...install, '--wait', '--timeout=3m'), /STATUS: deployed/)
  })

  await t.test('helm test serves an ensemble of two steps and asks it', async (t) => {
    t.match(await helm('test', 'tutti', '--timeout=3m'), /Phase: +Succeeded/)
  })

  await t.test('the face system is applied, and is Ready', async (t) => {
    await createClaim(repository)
    const pair = [`--cert=${certFile}`, `--key=${keyFile}`]
    await kubectl('create', 'secret', 'tls', 'edge', `--namespace=${SPACE}`, ...pair)
    await apply(...(await importManifests(repository)).map(expose))
    const all = ['models,ensembles', '--all', `--namespace=${SPACE}`]
    t.match(await kubectl('wait', '--for=condition=Ready', READY, ...all), /condition met/)
  })

  await t.test(
    'NVIDIA’s clients get through the ingress, with TLS, what tutti serve gives',
    async (t) => {
      const serving = await serve(t, { repositories: [repository] })
      const { grpcPort, httpPort } = serving
      const local = [`--grpc=127.0.0.1:${grpcPort}`, `--http=127.0.0.1:${httpPort}`]
      await runPythonChecks(t, 'served_systems.py', [...local, ...checks])
      const edge = `${HOST}:${INGRESS.https}`
      const outside = [`--grpc=${edge}`, `--http=${edge}`, `--ca=${caFile}`]
      await runPythonChecks(t, 'served_systems.py', [...outside, ...checks], { hosts })
    },
  )

  await t.test('what is deleted and uninstalled is gone', async (t) => {
    await kubectl('delete', 'models,ensembles', '--all', `--namespace=${SPACE}`)
    await helm('uninstall', 'tutti', '--wait', '--timeout=5m')
    await kubectl('wait', '--for=delete', 'pods', '--all', `--namespace=${SPACE}`, READY)
    await kubectl('wait', '--for=delete', 'pods', '--all', `--namespace=${SYSTEM}`, READY)
    const left = await getObject(
      'deployments',
      '--all-namespaces',
      '--selector=app.kubernetes.io/part-of=tutti',
    )
    t.same(left['items'], [])
    await kubectl('delete', 'namespace', SYSTEM)
    await kubectl('delete', 'persistentvolume', `${SPACE}-models`, '--wait=false')
  })
})

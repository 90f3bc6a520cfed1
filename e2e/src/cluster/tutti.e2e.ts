import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import type { PlainObject } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { parseAll } from '../chart/helm.ts'
import { FACE_MODELS, OCR, OCR_MODELS, SAMPLES } from '../seed-systems.ts'
import { runTutti, serve } from '../serving.ts'
import { tempFolder } from '../temp-repository.ts'
import { PYTHON_FLAGS, runPythonChecks } from '../triton-client.ts'
import { createClaim, publicFolder } from './claim.ts'
import { createEdge, edgeFlags, exposeByIngress } from './edge.ts'
import { apply, createNamespace, getObject, kubectl, withoutTuttiImages } from './kubectl.ts'
import { install, KEPT, leftovers, removeAfter, SYSTEM, uninstall } from './release.ts'

t.setTimeout(1_800_000)

const SPACE = 'team'
const ROUTER = 'tutti-router'
const READY = '--timeout=300s'
/** The two published systems, by the names that the checks have for them. */
const SYSTEMS = {
  face: { host: 'face.test', models: FACE_MODELS },
  ocr: { host: 'ocr.test', models: OCR_MODELS },
} as const
const NAMES = ['face', 'ocr'] as const
const KINDS = ['models', 'ensembles', 'routers'] as const

/** Both systems, the face's with ONNX files. */
async function makeRepository(t: Test): Promise<string> {
  const folder = await publicFolder(t)
  for (const model of [...FACE_MODELS, ...OCR_MODELS]) {
    await cp(join(OCR, model), join(folder, model), { recursive: true })
  }
  return folder
}

/** Runs `tutti import triton` on a repository that is the claim `models`, and parses what it makes. */
async function importManifests(folder: string): Promise<readonly PlainObject[]> {
  const args = ['import', 'triton', folder, '--storage-uri-prefix=pvc://models']
  const { code, out, err } = await runTutti(args)
  if (code !== 0) throw new Error(err)
  return parseAll(out)
}

function isOfFace({ metadata, spec }: PlainObject): boolean {
  return SYSTEMS.face.models.some((model) => model === (spec.modelName ?? metadata.name))
}

/** As it was imported, but for the hosts. */
function complete(manifest: PlainObject): PlainObject {
  const placed = { ...manifest, metadata: { ...manifest['metadata'], namespace: SPACE } }
  if (manifest['kind'] !== 'Ensemble') return placed
  return exposeByIngress(placed, SYSTEMS[isOfFace(manifest) ? 'face' : 'ocr'].host)
}

await t.test('Tutti on the cluster', { skip: withoutTuttiImages() }, async (t) => {
  const all = t
  const repository = await makeRepository(t)
  const manifests = (await importManifests(repository)).map(complete)
  const results = await tempFolder(t)
  const edge = await createEdge(
    t,
    NAMES.map((name) => SYSTEMS[name].host),
  )
  const checks = [`--samples=${SAMPLES}`, `--results=${results}`]
  const askOutside = (t: Test, name: (typeof NAMES)[number]): Promise<void> => {
    const outside = edgeFlags(edge, SYSTEMS[name].host)
    const args = [...outside, ...checks, `--systems=${name}`]
    return runPythonChecks(t, 'served_systems.py', args, { hosts: edge.hostsFile })
  }
  const untilReady = async (t: Test): Promise<void> => {
    const both = ['models,ensembles', '--all', `--namespace=${SPACE}`]
    t.match(await kubectl('wait', '--for=condition=Ready', READY, ...both), /condition met/)
  }
  removeAfter(t)
  await createNamespace(t, SPACE)

  await t.test('helm installs it', async (t) => {
    t.match(await install(), /STATUS: deployed/)
  })

  await t.test('the face system and the OCR system are applied, and are Ready', async (t) => {
    await createClaim(all, SPACE, repository)
    await edge.createSecret(SPACE)
    await apply(...manifests)
    await untilReady(t)
  })

  await t.test('both are served in one process, for comparison', async (t) => {
    const serving = await serve(t, { repositories: [repository], flags: PYTHON_FLAGS })
    const { grpcPort, httpPort } = serving
    const local = [`--grpc=127.0.0.1:${grpcPort}`, `--http=127.0.0.1:${httpPort}`]
    await runPythonChecks(t, 'served_systems.py', [...local, ...checks])
  })

  for (const name of NAMES) {
    await t.test(
      `${name}: NVIDIA’s clients get through the ingress, with TLS, what tutti serve gives`,
      (t) => askOutside(t, name),
    )
  }

  const podsOf = async (): Promise<readonly string[]> => {
    const ours = '--selector=app.kubernetes.io/managed-by=tutti-operator'
    const list = await getObject('pods', `--namespace=${SPACE}`, ours)
    return list['items'].map(({ metadata }: PlainObject) => metadata.uid).toSorted()
  }

  await t.test('what is uninstalled is gone; resources, and what they own, stay', async (t) => {
    const before = await podsOf()
    await uninstall()
    await kubectl('wait', '--for=delete', 'pods', '--all', `--namespace=${SYSTEM}`, READY)
    const left = await leftovers()
    t.same(
      left.filter((name) => !name.includes(` ${SPACE}/`)),
      KEPT,
    )
    const kinds = (await getObject('customresourcedefinitions'))['items'].map(
      ({ metadata }: PlainObject) => metadata.name,
    )
    for (const kind of KINDS) t.ok(kinds.includes(`${kind}.tutti.dev`), kind)
    const kept = await getObject('models,ensembles,routers', `--namespace=${SPACE}`)
    t.equal(kept['items'].length, manifests.length + 1)
    t.same(await podsOf(), before)
  })

  /** How many connections to NATS the pods have made so far. */
  const connectionsOf = async (): Promise<number> => {
    const of = ['--selector=app.kubernetes.io/managed-by=tutti-operator', `--namespace=${SPACE}`]
    const all = ['--tail=-1', '--max-log-requests=32', '--container=main']
    return (await kubectl('logs', ...of, ...all)).split('"broker connected"').length - 1
  }

  await t.test('a second install takes them up again, with the pods that are there', async (t) => {
    const [before, connections] = [await podsOf(), await connectionsOf()]
    t.match(await install(), /STATUS: deployed/)
    const router = [`deployment/${ROUTER}`, `--namespace=${SPACE}`, READY]
    await kubectl('rollout', 'status', ...router)
    await untilReady(t)
    // The conditions are those of before, and each pod has two connections.
    await until('all pods are on the new server of NATS', async () => {
      return (await connectionsOf()) >= connections + 2 * before.length
    })
    await askOutside(t, 'face')
    t.same(await podsOf(), before)
  })

  await t.test('what is deleted before it is uninstalled leaves nothing', async (t) => {
    // As docs/kubernetes.md says.
    await kubectl('delete', 'models,ensembles,routers', '--all', '--all-namespaces')
    await kubectl('wait', '--for=delete', 'pods', '--all', `--namespace=${SPACE}`, READY)
    await uninstall()
    await kubectl('wait', '--for=delete', 'pods', '--all', `--namespace=${SYSTEM}`, READY)
    t.same(await leftovers(), KEPT)
  })

  await t.test('with crds.keep: false everything goes with the release', async (t) => {
    t.match(await install(['--set=crds.keep=false']), /STATUS: deployed/)
    // Both would only be more of the same.
    await apply(...manifests.filter(isOfFace))
    await untilReady(t)
    await uninstall()
    for (const namespace of [SPACE, SYSTEM]) {
      await kubectl('wait', '--for=delete', 'pods', '--all', `--namespace=${namespace}`, READY)
    }
    t.same(await leftovers(), KEPT)
    const kinds = (await getObject('customresourcedefinitions'))['items'].map(
      ({ metadata }: PlainObject) => metadata.name,
    )
    t.notOk(KINDS.some((kind) => kinds.includes(`${kind}.tutti.dev`)))
  })
})

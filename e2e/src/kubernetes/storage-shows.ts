import { execFile } from 'node:child_process'
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { PlainObject } from '@tutti/kube/testing'
import type { Test } from 'tap'
import { ROOT } from '../serving.ts'
import { copyModels } from '../temp-repository.ts'
import { TORCH_PYTHON, withoutTorch } from '../triton-client.ts'
import type { TuttiCluster } from './cluster.ts'
import { TORCH_STEP_IMAGE } from './images.ts'
import { servedName } from './import-manifests.ts'
import { type ModelSource, openHttps, openLate, openS3, treeDigest } from './model-sources.ts'

/** Asks models over all clients, and compares with where they were served before. */
export type CheckModels = (t: Test, models: readonly string[], router?: string) => Promise<void>

/** A place for these shows: a namespace that takes volumes of the node, and whose claim is the repository. */
export interface StoragePlace {
  readonly cluster: TuttiCluster
  readonly namespace: string
  readonly repository: string
  /** What `tutti import triton` makes of the repository. */
  readonly manifests: readonly PlainObject[]
  readonly check: CheckModels
}

/** Of the fixtures: three small models, one of several versions, and an ensemble over the first. */
const BASIC_MODELS = ['add_one_batch', 'sum_batch', 'versioned', 'add_sub', 'ens_chain']
const TORCH_CONFIG = `platform: "pytorch_libtorch"
max_batch_size: 4
input [ { name: "INPUT__0" data_type: TYPE_FP32 dims: [ 3, -1, -1 ] } ]
output [ { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 3, -1, -1 ] } ]
instance_group { kind: KIND_CPU }
`

/** What the shows serve; with a TorchScript model where there is PyTorch. */
export async function makeStorageRepository(t: Test): Promise<string> {
  const folder = await copyModels(t, BASIC_MODELS)
  if (withoutTorch() !== false) return folder
  const script = `${ROOT}services/backends/src/testing/torchscript_models.py`
  const made = await copyModels(t, [])
  await promisify(execFile)(TORCH_PYTHON ?? '', ['-B', script, made])
  await cp(join(made, 'traced'), join(folder, 'traced'), { recursive: true })
  await writeFile(join(folder, 'traced', 'config.pbtxt'), TORCH_CONFIG)
  return folder
}

/** The models of that repository that can be served here. */
export function storedModels(): readonly string[] {
  return withoutTorch() === false ? [...BASIC_MODELS, 'traced'] : BASIC_MODELS
}

/** Models whose files come from everywhere reach Ready, say what is in the way, and answer as from their repository. */
export async function showStorage(all: Test, place: StoragePlace): Promise<void> {
  const { cluster, namespace, repository, check } = place
  const folder = (model: string): string => join(repository, model)
  const router = (): Promise<string> => cluster.routerOf(namespace)

  await all.test('hostPath, https with digest and token, s3 with digest and keys', async (t) => {
    const model = folder('add_one_batch')
    const storage = { digest: await treeDigest(model) }
    const host = { spec: { storageUri: `hostPath://${model}`, storage } }
    await Promise.all([
      ready(place, 'add_one_batch', host),
      openHttps(t, folder('sum_batch')).then((source) => ready(place, 'sum_batch', source)),
      openS3(t, folder('versioned')).then((source) => ready(place, 'versioned', source)),
      ready(place, 'ens_chain', { spec: {} }),
    ])
    await check(t, ['add_one_batch', 'sum_batch', 'versioned', 'ens_chain'], await router())
  })

  await all.test('a fetch that fails says why, and the Model heals without a change', async (t) => {
    const late = await openLate(t, folder('add_sub'))
    const manifest = await apply(place, 'add_sub', late)
    const failed = await cluster.untilSays(namespace, manifest, 'ArtifactsReady=False/FetchFailed')
    t.match(failed['status'].lastFailure, {
      reason: 'FetchFailed',
      container: 'fetch',
      exitCode: 10,
      message: new RegExp(`${late.spec['storageUri']}.*404`),
    })
    t.match(messageOf(failed, 'Ready'), /404/)
    late.arrive()
    const healed = await cluster.untilReady(namespace, manifest)
    t.equal(healed['metadata'].generation, failed['metadata'].generation)
    t.match(messageOf(healed, 'ArtifactsReady'), /./)
    await check(t, ['add_sub'], await router())
  })

  await all.test('another digest than the one that is wanted is never served', async (t) => {
    const model = folder('add_one_batch')
    const digest = `sha256:${'0'.repeat(64)}`
    const source = { spec: { storageUri: `hostPath://${model}`, storage: { digest } } }
    const manifest = await apply(place, 'add_one_batch', source)
    const failed = await cluster.untilSays(namespace, manifest, 'ArtifactsReady=False/FetchFailed')
    t.match(failed['status'].lastFailure, { exitCode: 14, message: /want sha256:0{64}/ })
    t.match(messageOf(failed, 'WorkloadAvailable'), /1 of 1 wanted pod available/)
    await check(t, ['add_one_batch', 'ens_chain'], await router())
    await ready(place, 'add_one_batch', { spec: { storageUri: `hostPath://${model}` } })
  })

  await all.test(
    'a TorchScript model in an image with PyTorch',
    { skip: withoutTorch() },
    async (t) => {
      const containers = [{ name: 'main', image: TORCH_STEP_IMAGE }]
      await ready(place, 'traced', { spec: { podTemplate: { spec: { containers } } } })
      await check(t, ['traced'], await router())
    },
  )
}

async function ready(place: StoragePlace, model: string, source: ModelSource): Promise<void> {
  await place.cluster.untilReady(place.namespace, await apply(place, model, source))
}

/** As it was imported, but for where its files are. */
async function apply(
  { cluster, namespace, manifests }: StoragePlace,
  model: string,
  { spec, secret }: ModelSource,
): Promise<PlainObject> {
  const imported = manifests.find((manifest) => servedName(manifest) === model)
  if (imported === undefined) throw new Error(`nothing was imported for ${model}`)
  if (secret !== undefined) {
    const { name, values: stringData } = secret
    await cluster.api.plain.apply(`/api/v1/namespaces/${namespace}/secrets/${name}`, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name },
      stringData,
    })
  }
  const manifest = { ...imported, spec: { ...imported['spec'], ...spec } }
  await cluster.apply(namespace, [manifest])
  return manifest
}

function messageOf({ status }: PlainObject, type: string): string {
  const conditions: readonly PlainObject[] = status?.conditions ?? []
  return conditions.find((condition) => condition['type'] === type)?.['message'] ?? ''
}

import { modelManifest } from '@tutti/api/testing'
import { silentLogger, systemClock } from '@tutti/chassis'
import {
  apiVersionOf,
  CONTROLLER_REVISION,
  type KubeObject,
  type Resource,
  type Stored,
} from '@tutti/kube'
import type { PlainObject } from '@tutti/kube/testing'
import { ENSEMBLE, MODEL, type ModelObject } from '../../api/kinds.ts'
import { type Caches, createCaches } from '../../controllers/caches.ts'
import {
  EnsembleReconciler,
  type EnsembleReconcilerOptions,
} from '../../controllers/ensemble/ensemble-reconciler.ts'
import { Exposure } from '../../controllers/ensemble/exposure.ts'
import { checkModel } from '../../controllers/model/check-model.ts'
import { createModelReader } from '../../controllers/model/model-reader.ts'
import type { OpenReflector } from '../../runtime/cache.ts'
import type { Result } from '../../runtime/controller.ts'
import { StatusWriter } from '../../runtime/status.ts'
import { type MemoryClient, memoryClient } from '../memory-client.ts'
import { type MemoryReflector, memoryReflector } from '../memory-reflector.ts'
import { testMetrics } from '../test-metrics.ts'
import { ACCEPTED, type CheckResult, type CheckResults, resultOf } from './check-result.ts'
import { REPOSITORY } from './repository.ts'
import { toServedRevision } from './served-revision.ts'

const NAMESPACE = 'ns'
const around = { clock: systemClock, log: silentLogger }
const { runtime: metrics } = testMetrics()
/**
 * Checks manifests with the operator's own controllers, over a server in memory. The manifests are applied to an empty namespace,
 * and the results are those at rest. Models serve REPOSITORY's configuration with the overrides of their manifests.
 *
 * @param o.hasRepository - true to serve the models of REPOSITORY without a manifest too.
 * @throws Error if the controllers do not come to rest.
 */
export async function checkInMemory(
  manifests: readonly PlainObject[],
  { hasRepository }: { readonly hasRepository: boolean },
): Promise<CheckResults> {
  const client = memoryClient()
  const caches = openCaches(client)
  for (const manifest of [...manifests, ...(hasRepository ? unclaimed(manifests) : [])]) {
    const metadata = { ...manifest['metadata'], namespace: NAMESPACE, generation: 1 }
    const resource = manifest['kind'] === 'Model' ? MODEL : ENSEMBLE
    client.put<KubeObject>(resource, { ...toTypeMeta(resource), ...manifest, metadata })
  }
  for (const model of caches.models.list()) serve(client, model)
  await reconcileAll(client, caches)
  return new Map<string, CheckResult>([
    ...caches.models.list().map((model) => [idOf(model), checkManifest(caches, model)] as const),
    ...caches.ensembles.list().map((ensemble) => [idOf(ensemble), resultOf(ensemble)] as const),
  ])
}

function unclaimed(manifests: readonly PlainObject[]): readonly PlainObject[] {
  const claimed = new Set(manifests.map(({ metadata, spec }) => spec.modelName ?? metadata.name))
  return REPOSITORY.filter(({ servedName }) => !claimed.has(servedName)).map(
    ({ servedName: modelName }, i) => modelManifest(`stored${i}`, { modelName }),
  )
}

function idOf({ kind, metadata }: KubeObject): string {
  return `${kind}/${metadata.name}`
}

function checkManifest(caches: Caches, model: Stored<ModelObject>): CheckResult {
  const rival = createModelReader(caches).rivalOf(model)
  const settings = { allowsHostAccess: false }
  const found = { hasSecret: true, claimRefusal: undefined, placementRefusal: undefined }
  return checkModel({ model, rival, settings, ...found }).refusal ?? ACCEPTED
}

/** Builds the fields that the server adds to what is written. */
function toTypeMeta(resource: Resource): Pick<KubeObject, 'apiVersion' | 'kind'> {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind }
}

/** Makes started caches that see each write of the client at once. */
export function openCaches(client: MemoryClient) {
  const reflectors = new Map<string, MemoryReflector>()
  const openReflector: OpenReflector = (o) => {
    const reflector = memoryReflector()
    reflectors.set(o.resource.kind, reflector)
    const opened = reflector.open(o)
    reflector.sync()
    return opened
  }
  client.onStored = ({ kind }: Resource, object: Stored<KubeObject>) =>
    reflectors.get(kind)?.put(object)
  const caches = createCaches({ ...around, client, openReflector, isFrozen: true })
  const { models, ensembles, revisions, ingresses } = caches
  for (const cache of [models, ensembles, revisions, ingresses]) cache.start()
  return caches
}

/** Stores the ControllerRevision for a Model that serves what its manifest says; none if it serves nothing. */
export function serve(client: MemoryClient, model: Stored<ModelObject>): void {
  const revision = toServedRevision(model)
  if (revision === undefined) return
  const { metadata } = revision
  const placed = { ...toTypeMeta(CONTROLLER_REVISION), ...revision }
  client.put(CONTROLLER_REVISION, { ...placed, metadata: { ...metadata, namespace: NAMESPACE } })
}

const PASSES = 10

function callIt<T>(wait: () => Promise<T>): Promise<T> {
  return wait()
}

/** Makes a function that reconciles one Ensemble, by its key. */
export function openReconcile(
  client: MemoryClient,
  caches: Caches,
  views: EnsembleReconcilerOptions['views'],
): (key: string) => Promise<Result> {
  const context = {
    signal: new AbortController().signal,
    log: silentLogger,
    withoutSlot: callIt,
  }
  const options = { ...around, client, metrics, caches }
  const reconciler = new EnsembleReconciler({
    ...options,
    statuses: new StatusWriter(options),
    exposure: new Exposure(options),
    events: { record: () => {} },
    groups: { apartFrom: () => [] },
    views,
  })
  return (key) => reconciler.reconcile(context, key)
}

/** Until a look at every Ensemble writes nothing. */
async function reconcileAll(client: MemoryClient, caches: Caches): Promise<void> {
  // oxlint-disable-next-line typescript/require-await -- there are no routers to ask
  const reconcile = openReconcile(client, caches, { look: async () => [] })
  const writes = () => client.calls.filter(({ verb }) => verb !== 'get' && verb !== 'list').length
  for (let pass = 0; pass < PASSES; pass += 1) {
    const before = writes()
    for (const key of caches.ensembles.keys()) await reconcile(key)
    if (writes() === before) return
  }
  throw new Error(`still writing after ${PASSES} passes: ${JSON.stringify(client.calls.at(-1))}`)
}

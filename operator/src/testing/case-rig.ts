import type { ApiServer, ApiServerOptions, PlainClient, PlainObject } from '@tutti/kube/testing'
import type { Test } from 'tap'
import { createCaches } from '../controllers/caches.ts'
import { type CaseOperator, type CaseOperatorOptions, startCaseOperator } from './case-operator.ts'
import { CONFIG_TEXT, MODEL_SPEC } from './model-cluster.ts'
import { applierOf, hasCondition, isThere, type Paths, pathsIn } from './namespaced.ts'
import { type Play, PodPlayer } from './pod-player.ts'
import { bindAdmin, freePodPort, startCaseServer } from './prepare-server.ts'
import { AROUND, closeCaches, openClient, startCaches } from './running-parts.ts'
import { startVersion, type VersionOptions } from './version-operator.ts'

export type CaseRig = Awaited<ReturnType<typeof openCaseRig>>

/** An operator with an election. */
export type StartVersionOptions = Pick<VersionOptions, 'name' | 'flags'>

export type StartOptions = Pick<CaseOperatorOptions, 'token' | 'idleMs' | 'prepare'>

export type CasePlace = Awaited<ReturnType<typeof openCasePlace>>

/** Kinds that the operator makes. */
export const MADE_KINDS: readonly string[] = [
  'deployments',
  'controllerrevisions',
  'ingresses',
  'networkpolicies',
  'horizontalpodautoscalers',
  'poddisruptionbudgets',
  'roles',
  'rolebindings',
  'services',
  'serviceaccounts',
  'configmaps',
  'secrets',
  'routers',
]

let made = 0

/**
 * A real API server, with Kubernetes' own controllers unless it is told otherwise, pods that are played, and as many operators as a
 * case wants.
 */
export async function openCaseRig(t: Test, o: ApiServerOptions = {}) {
  const { hasControllers = true } = o
  const server = await startCaseServer(t, { ...o, hasControllers })
  const { client, openReflector, close } = openClient(server.access())
  const caches = createCaches({ ...AROUND, client, openReflector })
  const plays = new Map<string, Play>()
  const podPort = await freePodPort()
  const player = new PodPlayer({
    plain: server.plain,
    caches,
    port: podPort,
    configText: CONFIG_TEXT,
    play: ({ metadata }) => plays.get(metadata.labels?.['tutti.dev/model'] ?? '') ?? READY,
    load: () => ({ inFlight: 0, queued: 0, slots: 1 }),
  })
  const used = [caches.pods, caches.revisions]
  t.teardown(async () => {
    await player.close()
    await closeCaches(used)
    await close()
  })
  await startCaches(used)
  const around = { podPort, direct: client, hasControllers }
  return {
    server,
    player,
    /** Plays of the pods of a Model, by its name; by default they become ready. */
    plays,
    /** For all namespaces. The test's teardown stops it, if the test does not. */
    startOperator: (test: Test, options: StartOptions & { readonly system: string }) =>
      start(test, server, { ...options, ...around }),
    openPlace: () => openCasePlace(server, around),
  }
}

async function start(t: Test, server: ApiServer, o: CaseOperatorOptions): Promise<CaseOperator> {
  const operator = await startCaseOperator(server, o)
  t.teardown(() => operator.stop())
  return operator
}

const READY: Play = { kind: 'ready' }

/** One namespace, and what a case does in it. @param o.hasControllers - service accounts are made by themselves. */
async function openCasePlace(
  server: ApiServer,
  o: Pick<CaseOperatorOptions, 'podPort' | 'direct'> & { readonly hasControllers: boolean },
) {
  const { plain } = server
  made += 1
  const namespace = `case-${made}`
  const system = `${namespace}-system`
  for (const name of [namespace, system]) {
    await plain.create('/api/v1/namespaces', { metadata: { name } })
  }
  if (o.hasControllers) {
    await plain.until(`/api/v1/namespaces/${namespace}/serviceaccounts/default`, isThere)
  }
  const path = pathsIn(namespace)
  const condition = async (plural: string, name: string, wanted: string): Promise<PlainObject> =>
    (await plain.until(path(plural, name), (object) => hasCondition(object, wanted))) ?? {}
  return {
    namespace,
    /** The namespace of its operators. */
    system,
    plain,
    path,
    /** Resolves with it once a condition has this status, and reason if one is given, for its newest generation. */
    condition,
    /** Resolves with the Model or Ensemble once its condition `Ready` is true for its newest generation. */
    ready: (plural: 'models' | 'ensembles' | 'routers', name: string) =>
      condition(plural, name, 'Ready=True'),
    /** For this namespace. The test's teardown stops it, if the test does not. */
    startOperator: (t: Test, options?: StartOptions) =>
      start(t, server, { ...options, ...o, namespace, system }),
    /** For this namespace, one of those that share a lease. The test's teardown stops it, if the test does not. */
    startVersion: async (t: Test, options: StartVersionOptions) => {
      await bindAdmin(plain, system)
      const operator = await startVersion(server, { ...options, ...o, namespace, system })
      t.teardown(() => operator.stop())
      return operator
    },
    /** All that the operator made, and what it says: equal for equal specs, whatever happened on the way. */
    look: () => look(plain, path, namespace),
    ...appliers(plain, path),
  }
}

function appliers(plain: PlainClient, path: Paths) {
  const apply = applierOf(plain, path)
  return {
    applyModel: (name: string, spec: PlainObject = {}) =>
      apply('Model', name, { ...MODEL_SPEC, ...spec }),
    /** Over the Model of that name: one step, with the tensors that all models of tests have. */
    applyEnsemble: (name: string, model: string, spec: PlainObject = {}) =>
      apply('Ensemble', name, {
        maxBatchSize: 4,
        inputs: [{ name: 'image', datatype: 'FP32', shape: [3, -1, -1] }],
        outputs: [{ name: 'boxes', from: 'detect.boxes' }],
        steps: [{ name: 'detect', modelRef: { name: model }, inputMap: { image: 'image' } }],
        ...spec,
      }),
  }
}

async function look(
  plain: PlainClient,
  path: Paths,
  namespace: string,
): Promise<readonly string[]> {
  const ours = '?labelSelector=app.kubernetes.io%2Fmanaged-by%3Dtutti-operator'
  const texts = await Promise.all([
    ...MADE_KINDS.map(async (plural) =>
      (await plain.list(`${path(plural)}${ours}`)).map((object) => toMade(plural, object)),
    ),
    ...['models', 'ensembles'].map(async (plural) =>
      (await plain.list(path(plural))).map((object) => describeObject(plural, object)),
    ),
  ])
  // These texts differ between places, or follow from what does: uids, and digests over names and uids.
  return texts
    .flat()
    .map((text) =>
      text
        .replaceAll(/case-\d+-system/g, 'SYSTEM')
        .replaceAll(namespace, 'NAMESPACE')
        .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UID')
        .replaceAll(/[0-9a-f]{10,}/g, 'DIGEST'),
    )
    .toSorted()
}

function toMade(plural: string, { metadata, spec, data, ...rest }: PlainObject): string {
  const { name, labels, annotations = {}, ownerReferences = [] } = metadata
  const { clusterIP: _, clusterIPs: __, ...wanted } = spec ?? {}
  // Credentials are new each time, and so is the time until which they are good.
  const isSecret = plural === 'secrets'
  const held = isSecret ? Object.keys(data ?? {}) : data
  const { 'deployment.kubernetes.io/revision': ___, ...kept } = annotations
  const owners = ownerReferences.map((owner: PlainObject) => `${owner['kind']}/${owner['name']}`)
  const { rules, subjects, roleRef, revision } = rest
  const more = { rules, subjects, roleRef, revision, owners, annotations: isSecret ? [] : kept }
  return JSON.stringify({ plural, name, labels, spec: wanted, data: held, ...more })
}

function describeObject(plural: string, { metadata, spec, status }: PlainObject): string {
  const { name, generation } = metadata
  const conditions = (status?.conditions ?? []).map(
    (one: PlainObject) =>
      `${one['type']}=${one['status']}/${one['reason']}@${one['observedGeneration']}`,
  )
  const seen = status?.observedGeneration
  return JSON.stringify({ plural, name, generation, spec, conditions: conditions.toSorted(), seen })
}

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

/** Options for an operator with an election. */
export type StartVersionOptions = Pick<VersionOptions, 'name' | 'flags'>

export type StartOptions = Pick<CaseOperatorOptions, 'token' | 'idleMs' | 'prepare' | 'scalingMs'>

export type CasePlace = Awaited<ReturnType<typeof openCasePlace>>

/** The plurals of the kinds that the operator creates. */
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
 * Starts a real API server with Kubernetes' own controllers, unless `o` says otherwise, and a PodPlayer. Each case then opens its
 * own namespace and starts its operators. Everything ends with the test.
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
    load: () => ({ inFlight: 0, queued: 0, slots: 1, requests: 0 }),
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
    /** Plays of a Model's pods, by the Model's name; by default pods become ready. */
    plays,
    /** Starts an operator for all namespaces. It stops with the test at the latest. */
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
    /** Namespace of the operators of this place. */
    system,
    plain,
    path,
    /** Resolves with the object when a condition of its newest generation is as wanted: `TYPE=STATUS` or `TYPE=STATUS/REASON`. */
    condition,
    /** Resolves with the object when the condition `Ready` of its newest generation is True. */
    ready: (plural: 'models' | 'ensembles' | 'routers', name: string) =>
      condition(plural, name, 'Ready=True'),
    /** Starts an operator for this namespace. It stops with the test at the latest. */
    startOperator: (t: Test, options?: StartOptions) =>
      start(t, server, { ...options, ...o, namespace, system }),
    /** Starts an operator with an election for this namespace. It stops with the test at the latest. */
    startVersion: async (t: Test, options: StartVersionOptions) => {
      await bindAdmin(plain, system)
      const operator = await startVersion(server, { ...options, ...o, namespace, system })
      t.teardown(() => operator.stop())
      return operator
    },
    /**
     * Describes all objects that the operator made, and the conditions. Equal specs give equal texts, whatever happened before.
     */
    look: () => look(plain, path, namespace),
    ...appliers(plain, path),
  }
}

function appliers(plain: PlainClient, path: Paths) {
  const apply = applierOf(plain, path)
  return {
    applyModel: (name: string, spec: PlainObject = {}) =>
      apply('Model', name, { ...MODEL_SPEC, ...spec }),
    /** Applies an Ensemble with one step, which runs the Model, and with the tensors of CONFIG_TEXT. */
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

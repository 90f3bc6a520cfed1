import { createMetrics, systemClock } from '@tutti/chassis'
import type { Stored } from '@tutti/kube'
import type { ApiServer, PlainClient, PlainObject } from '@tutti/kube/testing'
import type { Test } from 'tap'
import { createCaches, INDEX } from '../controllers/caches.ts'
import { createModelControllers } from '../controllers/model/create-model-controllers.ts'
import { createPodClient } from '../pods/pod-client.ts'
import type { PodState } from '../pods/pod-state.ts'
import { RouterViews } from '../pods/router-views.ts'
import type { EventInput } from '../runtime/events.ts'
import { createRuntimeMetrics } from '../runtime/metrics.ts'
import { applierOf, isThere, pathsIn } from './namespaced.ts'
import { type Play, PodPlayer } from './pod-player.ts'
import { freePodPort, startCaseServer } from './prepare-server.ts'
import { AROUND, closeCaches, endControllers, openClient, startCaches } from './running-parts.ts'
import { stepSettings } from './step-settings.ts'

/** The config.pbtxt that played pods serve. */
export const CONFIG_TEXT = `
backend: "onnxruntime"
max_batch_size: 4
input { name: "image" data_type: TYPE_FP32 dims: [ 3, -1, -1 ] }
output { name: "boxes" data_type: TYPE_FP32 dims: [ -1, 4 ] }
`

/** The default spec of a Model in tests. */
export const MODEL_SPEC: PlainObject = {
  modelFormat: { name: 'onnx' },
  storageUri: 'http://models.example/yolo.tar',
}

export type ModelCluster = Awaited<ReturnType<typeof openModelCluster>>

export interface ModelClusterOptions {
  /** Milliseconds that pods may take to answer, and reconciles to end. */
  readonly patienceMs?: number
}

/**
 * Starts a real API server with Kubernetes' own controllers, the controllers of Models, and a PodPlayer. All ends with the test.
 */
export async function openModelCluster(t: Test, o: ModelClusterOptions = {}) {
  const server = await startCaseServer(t, { hasControllers: true })
  return await openRig(t, server, o)
}

async function openRig(t: Test, server: ApiServer, { patienceMs }: ModelClusterOptions) {
  const { plain } = server
  const { client, openReflector, close } = openClient(server.access())
  const caches = createCaches({ ...AROUND, client, openReflector, isFrozen: true })
  const port = await freePodPort()
  const plays = new Map<string, Play>()
  const events: EventInput[] = []
  const podClient = createPodClient({
    clock: systemClock,
    port,
    ...(patienceMs !== undefined && { timeoutMs: patienceMs }),
  })
  const routers = new RouterViews({
    ...AROUND,
    client: podClient,
    routersOf: (namespace) => caches.pods.byIndex(INDEX.router, namespace),
    namespaces: () => [],
    onChange: () => {},
  })
  const scrapes = createMetrics()
  const { controller, scaler, demand } = createModelControllers({
    ...AROUND,
    client,
    caches,
    podClient,
    views: routers,
    scrapes,
    metrics: createRuntimeMetrics(scrapes),
    events: { record: (event: EventInput) => void events.push(event) },
    settings: stepSettings(),
    scalingMs: 200,
    ...(patienceMs !== undefined && { reconcileMs: patienceMs }),
  })
  const cluster = { load: { inFlight: 0, queued: 0, slots: 1, requests: 0 } }
  const player = new PodPlayer({
    plain,
    caches,
    port,
    configText: CONFIG_TEXT,
    play: (pod) => plays.get(modelNameOf(pod)) ?? { kind: 'ready' },
    load: () => cluster.load,
  })
  t.teardown(async () => {
    await endControllers([controller, scaler, demand, routers])
    await player.close()
    await closeCaches(Object.values(caches))
    await close()
  })
  await startCaches(Object.values(caches))
  controller.start()
  scaler.start()
  demand.start()
  return Object.assign(cluster, {
    plain,
    client,
    caches,
    controller,
    player,
    events,
    /** Plays of a Model's pods, by the Model's name. They count for pods that are bound later. */
    plays,
    ...actions(plain),
  })
}

let made = 0

function actions(plain: PlainClient) {
  const startRouter = async (namespace: string, name = 'router-1'): Promise<void> => {
    await plain.create(`/api/v1/namespaces/${namespace}/pods`, {
      metadata: {
        name,
        labels: {
          'app.kubernetes.io/managed-by': 'tutti-operator',
          'app.kubernetes.io/component': 'router',
        },
      },
      spec: { nodeName: 'node-1', containers: [{ name: 'main', image: 'router' }] },
    })
  }
  return {
    startRouter,
    namespace: async ({ hasRouter = true }: { readonly hasRouter?: boolean } = {}) => {
      made += 1
      const name = `ns-${made}`
      await plain.create('/api/v1/namespaces', { metadata: { name } })
      await plain.until(`/api/v1/namespaces/${name}/serviceaccounts/default`, isThere)
      if (hasRouter) await startRouter(name)
      return name
    },
    applyModel: (namespace: string, name: string, spec: PlainObject = {}) =>
      applierOf(plain, pathsIn(namespace))('Model', name, { ...MODEL_SPEC, ...spec }),
    /** Resolves with the Model when `fits` returns true for it. */
    untilModel: async (
      namespace: string,
      name: string,
      fits: (model: PlainObject) => boolean,
    ): Promise<PlainObject> => {
      const found = await plain.until(
        modelPath(namespace, name),
        (model) => model !== undefined && fits(model),
      )
      return found ?? {}
    },
  }
}

export function modelPath(namespace: string, name: string): string {
  return pathsIn(namespace)('models', name)
}

export function deploymentPath(namespace: string, name: string): string {
  return pathsIn(namespace)('deployments', `${name}-step`)
}

/** Returns a condition as `STATUS/REASON`, `True/Ready` say; undefined if it is absent or of an earlier generation. */
export function conditionOf(model: PlainObject, type: string): string | undefined {
  const { status, metadata } = model
  const found = status?.conditions?.find((condition: PlainObject) => condition['type'] === type)
  if (found?.observedGeneration !== metadata.generation) return undefined
  return `${found.status}/${found.reason}`
}

export const isModelReady = (model: PlainObject): boolean =>
  conditionOf(model, 'Ready') === 'True/Ready'

function modelNameOf({ metadata }: Stored<PodState>): string {
  return metadata.labels?.['tutti.dev/model'] ?? ''
}

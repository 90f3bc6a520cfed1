import { createMetrics, systemClock } from '@tutti/chassis'
import type { ApiServer, PlainObject } from '@tutti/kube/testing'
import type { Test } from 'tap'
import { createCaches, INDEX, keysOf } from '../controllers/caches.ts'
import type { ControllerContext } from '../controllers/context.ts'
import { createEnsembleController } from '../controllers/ensemble/ensemble-controller.ts'
import { createRouterControllers } from '../controllers/router/create-router-controllers.ts'
import { routerKeyOf } from '../controllers/router/router-trouble.ts'
import { AccountTenancy } from '../nats/account-tenancy.ts'
import { createPodClient } from '../pods/pod-client.ts'
import { RouterViews } from '../pods/router-views.ts'
import type { RouterDefaults } from '../resources/router-deployment.ts'
import { ROUTER_LABELS } from '../resources/router-names.ts'
import type { EventInput } from '../runtime/events.ts'
import { acceptModel } from './accept-model.ts'
import { applierOf, hasCondition, pathsIn } from './namespaced.ts'
import { type PodServer, startPodServer } from './pod-server.ts'
import { AROUND, closeCaches, endControllers, openClient, startCaches } from './running-parts.ts'
import { stepSettings } from './step-settings.ts'
import { testMetrics } from './test-metrics.ts'

export function routerDefaults(o: Partial<RouterDefaults> = {}): RouterDefaults {
  const { imagePullPolicy, imagePullSecrets, hasAssignedUser, nats, network, metricsConfig } =
    stepSettings()
  const image = 'tutti/router:test'
  const [allowsImage, allowsHostAccess] = [false, false]
  return {
    image,
    imagePullPolicy,
    imagePullSecrets,
    hasAssignedUser,
    allowsImage,
    allowsHostAccess,
    replicas: 2,
    console: 'None',
    nats,
    network,
    metricsConfig,
    ...o,
  }
}

/** A namespace with the actions of tests in it. */
export type EnsembleNamespace = ReturnType<typeof openNamespace>

let made = 0

/** Opens a rig with the controllers of Routers and Ensembles against a real API server. The test makes the pods. */
export async function openEnsembleRig(t: Test, server: ApiServer) {
  const { plain } = server
  const metrics = testMetrics()
  const events: EventInput[] = []
  // All router pods of a test answer on one port, each at an address of its own.
  const first = await startPodServer({ ip: '127.0.0.1' })
  t.teardown(() => first.close())
  const { port } = first
  /** Starts them; the rig ends them with the test, or sooner. */
  const start = async (): Promise<() => Promise<void>> => {
    const { client, openReflector, close } = openClient(server.access())
    const tenancy = new AccountTenancy({
      ...AROUND,
      client,
      namespace: 'default',
      urls: ['tls://nats.example:4222'],
      clusterHosts: [],
      limits: { connections: 96, subscriptions: 1024 },
      secrets: () => [],
      onLost: () => {},
      prefix: 'tutti',
      lifetimeMs: 86_400_000,
    })
    const context = {
      ...AROUND,
      client,
      openReflector,
      events: { record: (event: EventInput) => void events.push(event) },
      metrics: metrics.runtime,
    } satisfies Partial<ControllerContext>
    const shared = createCaches({ ...context, isFrozen: true, gatewayAskMs: 500 })
    const podClient = createPodClient({ clock: systemClock, port })
    const routers = new RouterViews({
      ...AROUND,
      client: podClient,
      routersOf: (name) => shared.pods.byIndex(INDEX.router, name),
      namespaces: () => shared.pods.indexValues(INDEX.router),
      onChange: (name) => {
        router.enqueue(routerKeyOf(name), 'low')
        for (const key of keysOf(shared.ensembles.inNamespace(name))) {
          ensemble.enqueue(key, 'low')
        }
      },
      pollMs: 500,
    })
    const parts = { ...context, caches: shared, views: routers }
    const defaults = routerDefaults()
    const { controller: router, scaler } = createRouterControllers({
      ...parts,
      scrapes: createMetrics(),
      podClient,
      settings: stepSettings(),
      defaults,
      tenancy,
      troublePollMs: 500,
      scalingMs: 200,
    })
    const ensemble = createEnsembleController({ ...parts, groups: { apartFrom: () => [] } })
    const caches = Object.values(shared)
    const controllers = [router, scaler, ensemble, routers]
    await startCaches(caches)
    for (const controller of controllers) controller.start()
    let stopping: Promise<void> | undefined
    const stop = async (): Promise<void> => {
      await endControllers(controllers)
      await closeCaches(caches)
      await close()
    }
    const stopOnce = (): Promise<void> => (stopping ??= stop())
    t.teardown(stopOnce)
    return stopOnce
  }
  const createNamespace = async () => {
    made += 1
    const name = `ns-${made}`
    await plain.create('/api/v1/namespaces', { metadata: { name } })
    return openNamespace(t, { server, name, port })
  }
  return { metrics, events: events as readonly EventInput[], start, createNamespace }
}

function openNamespace(
  t: Test,
  { server, name: namespace, port }: { server: ApiServer; name: string; port: number },
) {
  const { plain } = server
  let pods = 0
  const path = pathsIn(namespace)
  const startPod = async (
    name: string,
    labels: Readonly<Record<string, string>>,
  ): Promise<PodServer> => {
    pods += 1
    const ip = `127.77.${namespace.slice('ns-'.length)}.${pods}`
    const pod = await startPodServer({ ip, port })
    t.teardown(() => pod.close())
    await plain.create(path('pods'), {
      metadata: { name, labels },
      spec: { containers: [{ name: 'main', image: 'tutti/router:test' }] },
    })
    await plain.patch(`${path('pods', name)}/status`, {
      status: {
        phase: 'Running',
        podIP: ip,
        podIPs: [{ ip }],
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    })
    return pod
  }
  const apply = applierOf(plain, path)
  const applyModel = (name: string) =>
    apply('Model', name, { modelFormat: { name: 'onnx' }, storageUri: 'pvc://models/x' })
  return {
    name: namespace,
    path,
    applyModel,
    applyEnsemble: (name: string, spec: PlainObject) => apply('Ensemble', name, spec),
    /** Applies a Model and makes it accepted and served with this config.pbtxt. */
    serveModel: async (name: string, text: string): Promise<void> => {
      await applyModel(name)
      await acceptModel({ plain, path, name, text })
      await plain.patch(`${path('models', name)}/status`, {
        status: { readyReplicas: 1, latestReadyRevision: `revision-of-${name}` },
      })
    },
    /** Creates a ready pod, which answers at its own loopback address until the test ends. */
    startPod,
    /** Creates a ready router pod, as `startPod`. */
    startRouter: (name: string): Promise<PodServer> => startPod(name, ROUTER_LABELS),
    /** Resolves with the Ensemble's status when a condition has the status, and the reason if one is given. */
    condition: async (name: string, type: string, status: string, reason?: string) => {
      const wanted = [`${type}=${status}`, ...(reason === undefined ? [] : [reason])].join('/')
      const found = await plain.until(path('ensembles', name), (object) =>
        hasCondition(object, wanted),
      )
      const said: PlainObject = found?.['status'] ?? {}
      return said
    },
  }
}

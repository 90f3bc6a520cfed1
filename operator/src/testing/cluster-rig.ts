import { silentLogger, systemClock } from '@tutti/chassis'
import {
  type Client,
  CONFIG_MAP,
  createClient,
  createReflector,
  createTransport,
  DEPLOYMENT,
  SERVICE,
} from '@tutti/kube'
import {
  type ApiServer,
  type HttpFaultProxy,
  type PlainClient,
  startHttpFaultProxy,
} from '@tutti/kube/testing'
import type { Test } from 'tap'
import { Cache, type OpenReflector } from '../runtime/cache.ts'
import { MANAGED_BY } from '../runtime/children.ts'
import { type Paths, pathsIn } from './namespaced.ts'
import { type TestMetrics, testMetrics } from './test-metrics.ts'
import { TOY, type Toy } from './toy.ts'

const labelSelector = Object.entries(MANAGED_BY)
  .map(([name, value]) => `${name}=${value}`)
  .join()

/** The caches of everything that a toy is made of, in one namespace or in all. */
export function toyCaches(o: {
  readonly openReflector: OpenReflector
  readonly namespace?: string
  readonly isFrozen?: boolean
}) {
  const around = { ...o, clock: systemClock, log: silentLogger }
  return {
    toys: new Cache({ ...around, resource: TOY }),
    configMaps: new Cache({ ...around, resource: CONFIG_MAP, labelSelector }),
    deployments: new Cache({ ...around, resource: DEPLOYMENT, labelSelector }),
    services: new Cache({ ...around, resource: SERVICE, labelSelector }),
  }
}

/** A namespace with a toy in it, caches, and a proxy between them and the server. */
export interface ClusterRig {
  readonly namespace: string
  readonly plain: PlainClient
  readonly proxy: HttpFaultProxy
  /** Goes through the proxy. */
  readonly client: Client
  readonly caches: ReturnType<typeof toyCaches>
  readonly metrics: TestMetrics
  /** Applies a toy as a user would. */
  applyToy(name: string, spec: Toy['spec']): Promise<void>
  readonly path: Paths
}

let made = 0

/** Makes a rig in a new namespace; its teardown is the test's. */
export async function openClusterRig(t: Test, server: ApiServer): Promise<ClusterRig> {
  made += 1
  const namespace = `ns-${made}`
  const { plain } = server
  await plain.create('/api/v1/namespaces', { metadata: { name: namespace } })
  const proxy = await startHttpFaultProxy(server)
  const transport = createTransport(proxy.access(), {
    clock: systemClock,
    log: silentLogger,
    userAgent: 'test',
  })
  const client = createClient(transport)
  const caches = toyCaches({
    openReflector: (o) => createReflector({ ...o, client }),
    namespace,
    isFrozen: true,
  })
  t.teardown(async () => {
    await Promise.all(Object.values(caches).map((cache) => cache.close()))
    await transport.close()
    await proxy.close()
  })
  for (const cache of Object.values(caches)) cache.start()
  await Promise.all(Object.values(caches).map((cache) => cache.synced))
  const path = pathsIn(namespace)
  return {
    namespace,
    plain,
    proxy,
    client,
    caches,
    metrics: testMetrics(),
    path,
    applyToy: async (name, spec) => {
      await plain.apply(path('toys', name), {
        apiVersion: 'test.tutti.dev/v1',
        kind: 'Toy',
        metadata: { name, namespace },
        spec,
      })
    },
  }
}

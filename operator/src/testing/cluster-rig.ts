import { CONFIG_MAP, DEPLOYMENT, SERVICE } from '@tutti/kube'
import { type ApiServer, startHttpFaultProxy } from '@tutti/kube/testing'
import type { Test } from 'tap'
import { keepChild } from '../controllers/kept-objects.ts'
import { Cache, type OpenReflector } from '../runtime/cache.ts'
import { MANAGED_BY } from '../runtime/children.ts'
import { pathsIn } from './namespaced.ts'
import { AROUND, closeCaches, openClient, startCaches } from './running-parts.ts'
import { testMetrics } from './test-metrics.ts'
import { TOY, type Toy } from './toy.ts'

const labelSelector = Object.entries(MANAGED_BY)
  .map(([name, value]) => `${name}=${value}`)
  .join()

/** Makes the caches of toys and their children, in one namespace or in all. The caller starts and closes them. */
export function toyCaches(o: {
  readonly openReflector: OpenReflector
  readonly namespace?: string
  readonly isFrozen?: boolean
}) {
  const around = { ...o, ...AROUND }
  const children = { ...around, labelSelector, trim: keepChild }
  return {
    toys: new Cache({ ...around, resource: TOY }),
    configMaps: new Cache({ ...children, resource: CONFIG_MAP }),
    deployments: new Cache({ ...children, resource: DEPLOYMENT }),
    services: new Cache({ ...children, resource: SERVICE }),
  }
}

let made = 0

/** Opens a namespace for toys, with started caches behind a proxy to the server. All of it is closed with the test. */
export async function openClusterRig(t: Test, server: ApiServer) {
  made += 1
  const namespace = `ns-${made}`
  const { plain } = server
  await plain.create('/api/v1/namespaces', { metadata: { name: namespace } })
  const proxy = await startHttpFaultProxy(server)
  const { client, openReflector, close } = openClient(proxy.access())
  const caches = toyCaches({ openReflector, namespace, isFrozen: true })
  const all = Object.values(caches)
  t.teardown(async () => {
    await closeCaches(all)
    await close()
    await proxy.close()
  })
  await startCaches(all)
  const path = pathsIn(namespace)
  return {
    namespace,
    plain,
    proxy,
    /** Client that goes through the proxy. */
    client,
    caches,
    metrics: testMetrics(),
    /** Applies a toy as a user would. */
    applyToy: async (name: string, spec: Toy['spec']): Promise<void> => {
      await plain.apply(path('toys', name), {
        apiVersion: 'test.tutti.dev/v1',
        kind: 'Toy',
        metadata: { name, namespace },
        spec,
      })
    },
    path,
  }
}

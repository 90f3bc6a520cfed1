import { readFile } from 'node:fs/promises'
import {
  type ApiServer,
  type ApiServerOptions,
  installCrd,
  type PlainClient,
  startApiServer,
} from '@tutti/kube/testing'
import type { Test } from 'tap'
import { parse } from 'yaml'
import { startPodServer } from './pod-server.ts'

const CRDS = ['models', 'ensembles', 'routers'].map(
  (plural) => new URL(`../../../crds/tutti.dev_${plural}.yaml`, import.meta.url),
)

/** Installs the CRDs of this repository in a server, and waits until they are served. */
export async function installCrds({ plain }: Pick<ApiServer, 'plain'>): Promise<void> {
  for (const url of CRDS) {
    await installCrd(plain, parse(await readFile(url, 'utf8')))
  }
}

/** Starts a real API server with the CRDs of this repository and a node. All of it ends with the test. */
export async function startCaseServer(t: Test, o: ApiServerOptions): Promise<ApiServer> {
  const server = await startApiServer(o)
  t.teardown(() => server.stop())
  await installCrds(server)
  t.teardown(await startNode(server.plain))
  return server
}

/** Gives the ServiceAccount `operator` of a namespace all rights in the cluster. */
export async function bindAdmin(plain: PlainClient, namespace: string): Promise<void> {
  const group = 'rbac.authorization.k8s.io'
  await plain.apply(`/apis/${group}/v1/clusterrolebindings/${namespace}`, {
    apiVersion: `${group}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: namespace },
    roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', namespace, name: 'operator' }],
  })
}

/** Installs HTTPRoute in a server, with a schema that accepts anything, and waits until it is served. */
export async function installGatewayApi({ plain }: Pick<ApiServer, 'plain'>): Promise<void> {
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  await installCrd(plain, {
    metadata: {
      name: 'httproutes.gateway.networking.k8s.io',
      annotations: {
        'api-approved.kubernetes.io': 'https://github.com/kubernetes-sigs/gateway-api/pull/1',
      },
    },
    spec: {
      group: 'gateway.networking.k8s.io',
      scope: 'Namespaced',
      names: {
        plural: 'httproutes',
        singular: 'httproute',
        kind: 'HTTPRoute',
        listKind: 'HTTPRouteList',
      },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: {
            openAPIV3Schema: { type: 'object', properties: { spec: open, status: open } },
          },
        },
      ],
    },
  })
}

/** Less than the shortest time after which a test lets Kubernetes take a node for lost. */
const BEAT_MS = 2000

/**
 * Creates a node that is ready, and renews its heartbeat so that it stays ready.
 *
 * @param taints - keys of the node's taints.
 * @returns a function that ends the heartbeat.
 */
export async function startNode(
  plain: PlainClient,
  name = 'node-1',
  taints: readonly string[] = [],
): Promise<() => void> {
  const resources = { cpu: '64', memory: '256Gi', pods: '500' }
  await plain.create('/api/v1/nodes', {
    metadata: { name, labels: { 'kubernetes.io/hostname': name } },
    spec: { taints: taints.map((key) => ({ key, effect: 'NoSchedule' })) },
    status: { capacity: resources, allocatable: resources },
  })
  const beat = async (): Promise<void> => {
    const at = new Date().toISOString()
    const condition = {
      type: 'Ready',
      status: 'True',
      reason: 'KubeletReady',
      message: '',
      lastHeartbeatTime: at,
      lastTransitionTime: at,
    }
    await plain.send('PATCH', `/api/v1/nodes/${name}/status`, {
      body: { status: { conditions: [condition] } },
    })
  }
  await beat()
  const timer = setInterval(() => void beat().catch(() => {}), BEAT_MS)
  return () => clearInterval(timer)
}

/** Returns a port that should be free at all loopback addresses of played pods. */
export async function freePodPort(): Promise<number> {
  const server = await startPodServer({ ip: '127.81.255.254' })
  await server.close()
  return server.port
}

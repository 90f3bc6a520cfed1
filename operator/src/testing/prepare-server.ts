import { readFile } from 'node:fs/promises'
import {
  type ApiServer,
  type ApiServerOptions,
  type PlainClient,
  type PlainObject,
  startApiServer,
} from '@tutti/kube/testing'
import type { Test } from 'tap'
import { parse } from 'yaml'
import { startPodServer } from './pod-server.ts'

const CRDS = ['models', 'ensembles', 'routers'].map(
  (plural) => new URL(`../../../crds/tutti.dev_${plural}.yaml`, import.meta.url),
)

/** Puts the CRDs of this repository into a server, and waits until they are served. */
export async function installCrds({ plain }: Pick<ApiServer, 'plain'>): Promise<void> {
  for (const url of CRDS) {
    const crd: PlainObject = parse(await readFile(url, 'utf8'))
    await plain.apply(
      `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crd['metadata'].name}`,
      crd,
    )
    await plain.until(
      `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crd['metadata'].name}`,
      (found) =>
        found?.['status']?.conditions?.some(
          (condition: PlainObject) =>
            condition['type'] === 'Established' && condition['status'] === 'True',
        ),
    )
    await untilServed(plain, 'tutti.dev/v1alpha1', crd['spec'].names.plural)
  }
}

/** A real API server with our CRDs and a node; all of it ends with the test. */
export async function startCaseServer(t: Test, o: ApiServerOptions): Promise<ApiServer> {
  const server = await startApiServer(o)
  t.teardown(() => server.stop())
  await installCrds(server)
  t.teardown(await startNode(server.plain))
  return server
}

/** A resource is listed, and then served, a moment after its definition is established. */
export async function untilServed(plain: PlainClient, version: string, plural: string) {
  for (;;) {
    const listed = await plain.send('GET', `/apis/${version}`)
    const names: readonly PlainObject[] = listed.body['resources'] ?? []
    const { status } = await plain.send('GET', `/apis/${version}/${plural}`)
    if (status === 200 && names.some(({ name }) => name === plural)) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Lets the operator of that namespace do everything. */
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

/** Puts HTTPRoute into a server, with a schema that takes anything. It is served a moment later. */
export async function installGatewayApi({ plain }: Pick<ApiServer, 'plain'>): Promise<void> {
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  await plain.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
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
 * A node that is ready, and says so again before others take it for lost.
 *
 * @param taints - keys of what keeps pods away that do not tolerate it.
 * @returns ends it.
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

/** One that all addresses of the tests' pods have free. */
export async function freePodPort(): Promise<number> {
  const server = await startPodServer({ ip: '127.81.255.254' })
  await server.close()
  return server.port
}

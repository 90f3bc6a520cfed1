import type { PlainClient, PlainObject } from '@tutti/kube/testing'
import { now } from './pod-container.ts'

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
const LEASE_S = 40

/** Makes a node that is ready, with devices that nobody looks at. */
export async function createNode(
  plain: PlainClient,
  name: string,
  resources: Readonly<Record<string, string>>,
): Promise<void> {
  await plain.create('/api/v1/nodes', {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': 'amd64',
      },
    },
    status: { capacity: resources, allocatable: resources },
  })
  await renewNode(plain, name)
  const at = now()
  const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'it is' }
  const conditions = [{ ...ready, lastHeartbeatTime: at, lastTransitionTime: at }]
  await plain.patch(`/api/v1/nodes/${name}/status`, { status: { conditions } })
}

/** Says that a node lives, which must be said again within 40 s. */
export async function renewNode(plain: PlainClient, name: string): Promise<void> {
  const lease: PlainObject = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: 'kube-node-lease' },
    spec: {
      holderIdentity: name,
      leaseDurationSeconds: LEASE_S,
      renewTime: new Date().toISOString().replace('Z', '000Z'),
    },
  }
  await plain.apply(`${LEASES}/${name}`, lease, 'kubelet')
}

/**
 * Says that a node and its pods are not ready, as the node controller does when it has not heard of the node for 50 s. What
 * follows of it is Kubernetes' own: taints, and the end of pods that do not tolerate them.
 */
export async function markNodeLost(plain: PlainClient, name: string): Promise<void> {
  const at = now()
  const lost = { type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown', message: 'silent' }
  const conditions = [{ ...lost, lastHeartbeatTime: at, lastTransitionTime: at }]
  await plain.patch(`/api/v1/nodes/${name}/status`, { status: { conditions } })
  for (const { metadata } of await plain.list(
    `/api/v1/pods?fieldSelector=spec.nodeName%3D${name}`,
  )) {
    const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}/status`
    const unready = { type: 'Ready', status: 'False', lastTransitionTime: at }
    const body = { status: { conditions: [unready] } }
    const contentType = 'application/strategic-merge-patch+json'
    await plain.send('PATCH', path, { body, contentType })
  }
}

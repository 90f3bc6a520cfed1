import { join } from 'node:path'
import { type StartedProcess, startProcess } from '@tutti/chassis/testing'
import type { PlainClient } from './plain-client.ts'

const RESOURCES = { cpu: '32', memory: '256Gi', pods: '110', 'nvidia.com/gpu': '8' }

/** Makes nodes `fake-0`, `fake-1`, ... and starts kwok, which keeps them alive and makes their pods ready. */
export async function startPretendedNodes(o: {
  readonly bin: string
  readonly kubeconfig: string
  readonly client: PlainClient
  readonly count: number
}): Promise<StartedProcess> {
  for (let n = 0; n < o.count; n++) {
    await o.client.create('/api/v1/nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name: `fake-${n}`,
        labels: {
          'kubernetes.io/hostname': `fake-${n}`,
          'kubernetes.io/os': 'linux',
          'kubernetes.io/arch': 'amd64',
        },
        annotations: { 'kwok.x-k8s.io/node': 'fake' },
      },
      status: { allocatable: RESOURCES, capacity: RESOURCES },
    })
  }
  return await startProcess(join(o.bin, 'kwok'), [
    `--kubeconfig=${o.kubeconfig}`,
    '--manage-all-nodes=true',
    '--node-lease-duration-seconds=40',
    // Loopback: what is sent to a pretended pod or node never leaves the machine.
    '--cidr=127.97.0.1/16',
    '--node-ip=127.0.0.1',
    '--server-address=',
    `--config=${join(o.bin, 'kwok-stages.yaml')}`,
  ])
}

import type { Rendered } from '../chart/helm.ts'
import type { NamedPort, Pod } from './connection.ts'

const COMPONENT = 'app.kubernetes.io/component'

/** Finds how a pod is called in these tests: not by its workload's name, which values change. */
export function componentOf({ labels, name }: Pod): string {
  return labels[COMPONENT] ?? name
}

/** The pods that Kubernetes would make of workloads: one of each, of a StatefulSet all. */
export function podsOf(objects: readonly Rendered[]): readonly Pod[] {
  return objects.flatMap(({ kind, metadata, spec }): readonly Pod[] => {
    if (spec?.template?.spec === undefined) return []
    const count = kind === 'StatefulSet' ? spec.replicas : 1
    return Array.from({ length: count }, (_, index) => {
      const name = kind === 'StatefulSet' ? `${metadata.name}-${index}` : metadata.name
      return toPod(name, metadata.namespace, spec.template)
    })
  })
}

function toPod(name: string, namespace: string, { metadata, spec }: Rendered): Pod {
  // Policies say nothing certain about such a pod.
  if (spec.hostNetwork === true) throw new Error(`${name}: got hostNetwork, want a pod's own`)
  return {
    kind: 'pod',
    namespace,
    name,
    labels: metadata.labels,
    ip: podAddress(`${namespace}/${name}`),
    node: 'node-1',
    ports: spec.containers.flatMap(({ ports = [] }: Rendered) => ports.map(toNamedPort)),
  }
}

function toNamedPort({ name, containerPort, protocol = 'TCP' }: Rendered): NamedPort {
  return { name, port: containerPort, protocol }
}

/** A pod that no manifest of ours describes. */
export function bystander(
  path: string,
  labels: Pod['labels'] = {},
  ports: readonly NamedPort[] = [],
): Pod {
  const [namespace = '', name = ''] = path.split('/')
  return { kind: 'pod', namespace, name, labels, ip: podAddress(path), node: 'node-2', ports }
}

const addresses = new Map<string, string>()

/** One of 10.244.0.0/16 for each pod, the same whenever it is asked for. */
function podAddress(path: string): string {
  const known = addresses.get(path)
  if (known !== undefined) return known
  const number = addresses.size + 1
  const address = `10.244.${number >> 8}.${number & 255}`
  addresses.set(path, address)
  return address
}

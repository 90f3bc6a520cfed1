import { BlockList, isIPv6 } from 'node:net'
import type { Connection, Party, Pod } from './connection.ts'
import {
  type Direction,
  type Labels,
  type NetworkPolicy,
  type Peer,
  type PolicyPort,
  rulesOf,
  selects,
} from './network-policy.ts'

/** Namespaces and policies: they decide about connections. */
export interface Network {
  /** Labels of namespaces, by their names. */
  readonly namespaces: Readonly<Record<string, Labels>>
  readonly policies: readonly NetworkPolicy[]
}

/**
 * Whether a cluster that enforces NetworkPolicies lets the connection be: the egress of the pod that begins it and the ingress of
 * the pod that is asked both have to. A pod always reaches itself, and a pod and its node each other.
 *
 * @see https://kubernetes.io/docs/concepts/services-networking/network-policies/
 */
export function isAllowed(network: Network, connection: Connection): boolean {
  const { from, to } = connection
  if (areAtHome(from, to)) return true
  return lets(network, 'Egress', from, connection) && lets(network, 'Ingress', to, connection)
}

function areAtHome(from: Party, to: Party): boolean {
  if (from.kind === 'pod' && to.kind === 'pod') {
    return from.namespace === to.namespace && from.name === to.name
  }
  if (from.kind === 'pod') return to.kind === 'node' && from.node === to.name
  return to.kind === 'pod' && from.kind === 'node' && from.name === to.node
}

/** A pod that no policy selects for the direction lets everything; else what any rule of any of them lets. */
function lets(
  { namespaces, policies }: Network,
  direction: Direction,
  party: Party,
  connection: Connection,
): boolean {
  if (party.kind !== 'pod') return true
  const other = direction === 'Ingress' ? connection.from : connection.to
  const selecting = policies.filter((policy) => isSelected(policy, direction, party))
  return (
    selecting.length === 0 ||
    selecting.some((policy) => {
      const isPeer = (peer: Peer): boolean => matches(peer, other, policy, namespaces)
      return rulesOf(policy, direction).some(({ peers, ports }) => {
        return (
          (peers.length === 0 || peers.some(isPeer)) &&
          (ports.length === 0 || ports.some((port) => hasPort(port, connection)))
        )
      })
    })
  )
}

function isSelected(policy: NetworkPolicy, direction: Direction, pod: Pod): boolean {
  return (
    policy.metadata.namespace === pod.namespace &&
    policy.spec.policyTypes.includes(direction) &&
    selects(policy.spec.podSelector, pod.labels)
  )
}

/** Without a namespaceSelector a podSelector is about the policy's own namespace. */
function matches(
  { podSelector, namespaceSelector, ipBlock }: Peer,
  party: Party,
  policy: NetworkPolicy,
  namespaces: Network['namespaces'],
): boolean {
  if (ipBlock !== undefined) return contains(ipBlock.cidr, party.ip)
  if (party.kind !== 'pod') return false
  if (podSelector === undefined && namespaceSelector === undefined) {
    throw new Error(`${policy.metadata.name}: got a peer without a field, want a selector`)
  }
  const labels = namespaces[party.namespace]
  if (labels === undefined) throw new Error(`namespaces: got none called ${party.namespace}`)
  const isInNamespace =
    namespaceSelector === undefined
      ? party.namespace === policy.metadata.namespace
      : selects(namespaceSelector, labels)
  return isInNamespace && selects(podSelector ?? {}, party.labels)
}

function contains(cidr: string, ip: string): boolean {
  const [network = '', prefix] = cidr.split('/')
  const family = isIPv6(network) ? 'ipv6' : 'ipv4'
  const list = new BlockList()
  list.addSubnet(network, Number(prefix), family)
  return isIPv6(ip) === (family === 'ipv6') && list.check(ip, family)
}

/** A name is that of a port of the pod that is asked, in either direction. */
function hasPort(
  { port, protocol = 'TCP' }: PolicyPort,
  { to, port: asked, protocol: spoken = 'TCP' }: Connection,
): boolean {
  if (protocol !== spoken) return false
  if (port === undefined) return true
  if (typeof port === 'number') return asked === port
  return (
    to.kind === 'pod' &&
    to.ports.some((one) => one.name === port && one.protocol === spoken && one.port === asked)
  )
}

import type { Labels, Protocol } from './network-policy.ts'

export interface Pod {
  readonly kind: 'pod'
  readonly namespace: string
  readonly name: string
  readonly labels: Labels
  readonly ip: string
  /** Name of the node that it runs on. */
  readonly node: string
  /** The named ports of its containers. */
  readonly ports: readonly NamedPort[]
}

export interface NamedPort {
  readonly name: string
  readonly port: number
  readonly protocol: Protocol
}

/** The kubelet, and every pod on the network of its node: policies do not tell them apart. */
export interface Node {
  readonly kind: 'node'
  readonly name: string
  readonly ip: string
}

/** Anything else, in the cluster or not. */
export interface Address {
  readonly kind: 'address'
  readonly ip: string
}

/** An end of a connection. */
export type Party = Pod | Node | Address

/** A connection that is opened. The answers on it need no rule. */
export interface Connection {
  readonly from: Party
  readonly to: Party
  /** The port of the pod itself, behind any Service. */
  readonly port: number
  readonly protocol?: Protocol
}

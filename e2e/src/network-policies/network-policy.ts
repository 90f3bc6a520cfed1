export type Labels = Readonly<Record<string, string>>

/** Selector of a policy of ours: of the operators of expressions it has only In. */
export interface LabelSelector {
  readonly matchLabels?: Labels
  readonly matchExpressions?: readonly {
    readonly key: string
    readonly operator: string
    readonly values?: readonly string[]
  }[]
}

export type Direction = 'Ingress' | 'Egress'

export type Protocol = 'TCP' | 'UDP'

/** `networking.k8s.io/v1` as the API server takes it. */
export interface NetworkPolicy {
  readonly metadata: { readonly name: string; readonly namespace: string }
  readonly spec: {
    readonly podSelector: LabelSelector
    readonly policyTypes: readonly Direction[]
    readonly ingress?: readonly IngressRule[]
    readonly egress?: readonly EgressRule[]
  }
}

export interface IngressRule {
  readonly from?: readonly Peer[]
  readonly ports?: readonly PolicyPort[]
}

export interface EgressRule {
  readonly to?: readonly Peer[]
  readonly ports?: readonly PolicyPort[]
}

export interface Peer {
  readonly podSelector?: LabelSelector
  readonly namespaceSelector?: LabelSelector
  readonly ipBlock?: { readonly cidr: string }
}

export interface PolicyPort {
  readonly protocol?: Protocol
  readonly port?: number | string
}

/** Whether the selector takes what has these labels: all of its demands hold; one without demands takes everything. */
export function selects(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Labels,
): boolean {
  const valueOf = (key: string): string | undefined =>
    Object.hasOwn(labels, key) ? labels[key] : undefined
  return (
    Object.entries(matchLabels).every(([key, value]) => valueOf(key) === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      if (operator !== 'In') throw new Error(`operator: got ${operator}, want In`)
      return values.includes(valueOf(key) ?? '')
    })
  )
}

/** The rules of one direction. */
export function rulesOf({ spec }: NetworkPolicy, direction: Direction) {
  return direction === 'Ingress'
    ? (spec.ingress ?? []).map(({ from = [], ports = [] }) => ({ peers: from, ports }))
    : (spec.egress ?? []).map(({ to = [], ports = [] }) => ({ peers: to, ports }))
}

const SELECTOR = ['matchLabels', 'matchExpressions']
/** Every field that is understood here, by the field that has it. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  spec: ['podSelector', 'policyTypes', 'ingress', 'egress'],
  podSelector: SELECTOR,
  namespaceSelector: SELECTOR,
  matchExpressions: ['key', 'operator', 'values'],
  ingress: ['from', 'ports'],
  egress: ['to', 'ports'],
  from: ['podSelector', 'namespaceSelector', 'ipBlock'],
  to: ['podSelector', 'namespaceSelector', 'ipBlock'],
  ipBlock: ['cidr'],
  ports: ['protocol', 'port'],
}

/**
 * A manifest as a policy. A field that is not known here would be ignored silently, and the results be wrong.
 *
 * @throws Error naming the field.
 */
export function toNetworkPolicy(object: Readonly<Record<string, unknown>>): NetworkPolicy {
  const { spec } = object
  checkFields('spec', spec)
  if (typeof spec !== 'object' || spec === null || !('policyTypes' in spec)) {
    throw new Error('spec: got no policyTypes, want them')
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its fields were checked, and an API server took it
  return object as unknown as NetworkPolicy
}

function checkFields(field: string, value: unknown): void {
  const known = FIELDS[field]
  if (known === undefined) return
  for (const one of Array.isArray(value) ? value : [value]) {
    // An empty field of YAML.
    if (one === null || one === undefined) continue
    for (const [key, inner] of Object.entries(one)) {
      if (!known.includes(key)) throw new Error(`${field}: got ${key}, want ${known.join(', ')}`)
      checkFields(key, inner)
    }
  }
}

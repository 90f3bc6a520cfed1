/** Facts of the chart's values that decide who reaches whom. */
export interface Facts {
  /** Namespaces of `scope.namespaces`; undefined if all are served. */
  readonly scope: readonly string[] | undefined
  /** Namespace of `helm test`, whose router takes clients of all namespaces; undefined if it is not rendered, or is a tenant. */
  readonly testNamespace: string | undefined
  /** Where `helm test` serves its files, and asks. */
  readonly testPods: string
  /** Namespaces of `networkPolicy.ingressFrom` and `.scrapeNamespaces`. */
  readonly scrapers: readonly string[]
  /** The chart's own servers of NATS. */
  readonly natsServers: number
  /** Whether `networkPolicy.apiServerCIDR` is given. */
  readonly hasApiServerRange: boolean
}

/**
 * A row of the table in docs/security.md: exactly these reach these pods at these ports.
 *
 * `namespace/name` with a component of Tutti, or a pod that is not ours; in `from`, `team-a/*` is every pod of the namespace,
 * `pods` every pod, `outside` every address. Operator and NATS, whose own egress is ruled, are meant only where they are named.
 */
export interface Promised {
  readonly what: string
  readonly to: string
  readonly ports: readonly number[]
  readonly protocol?: 'UDP'
  readonly from: readonly string[]
}

const OPERATOR = 'tutti-system/operator'
const NATS = 'tutti-system/nats'
const EVERYBODY = ['pods', 'outside']
/** A namespace of clients that the settings of team-a's router name. */
const CLIENTS = 'apps/*'

/** Everything that is promised. */
export function promisesOf(facts: Facts): readonly Promised[] {
  const { testNamespace } = facts
  return [
    ...ofOperator(facts),
    ...ofNats(facts),
    ...ofNamespace('team-a', [CLIENTS], facts),
    ...ofDirectSteps('team-a', ['team-a/router']),
    ...ofNamespace('team-b', [], facts),
    ...ofDirectSteps('team-b', []),
    ...(testNamespace === undefined ? [] : ofNamespace(testNamespace, ['pods'], facts)),
    ...ofOthers(facts),
  ]
}

function ofOperator({ scrapers }: Facts): readonly Promised[] {
  const to = OPERATOR
  return [
    { what: 'metrics are for ingressFrom', to, ports: [8080], from: scrapers.map(allOf) },
    { what: 'health is for the kubelet alone', to, ports: [8081], from: [] },
    { what: 'nothing else is open', to, ports: [22, 443, 8000, 8002, 9000], from: [] },
  ]
}

function ofNats({ natsServers, scope = ['*'] }: Facts): readonly Promised[] {
  if (natsServers === 0) return []
  const to = NATS
  const served = scope.flatMap((namespace) => [`${namespace}/router`, `${namespace}/step`])
  return [
    {
      what: 'clients are routers and steps that are served, and the operator',
      to,
      ports: [4222],
      from: [...served, OPERATOR],
    },
    {
      what: 'the port of the cluster is for its servers',
      to,
      ports: [6222],
      from: natsServers > 1 ? [to] : [],
    },
    { what: 'monitoring is for its own container', to, ports: [8222, 22, 8080], from: [] },
  ]
}

function ofNamespace(
  namespace: string,
  clients: readonly string[],
  { scrapers }: Facts,
): readonly Promised[] {
  const own = allOf(namespace)
  const readers = [own, OPERATOR, ...scrapers.map(allOf)]
  const [router, step] = [`${namespace}/router`, `${namespace}/step`]
  return [
    {
      what: 'the whole API is for the namespace and its clientNamespaces',
      to: router,
      ports: [8000, 8001],
      from: [own, ...clients],
    },
    { what: 'ports for outside are open', to: router, ports: [9000, 9001], from: EVERYBODY },
    { what: 'metrics are for those who scrape', to: router, ports: [8002], from: readers },
    { what: 'steps are for the namespace', to: step, ports: [8000, 8001], from: [own] },
    { what: 'metrics are for those who scrape', to: step, ports: [8002], from: readers },
    { what: 'nothing else is open', to: router, ports: [22, 4222, 8003, 8081], from: [] },
    { what: 'nothing else is open', to: step, ports: [22, 4222, 8004, 9000, 9001], from: [] },
  ]
}

/** @param from - the routers of the namespace, if its Router has a `stepTransport`. */
function ofDirectSteps(namespace: string, from: readonly string[]): readonly Promised[] {
  const to = `${namespace}/step`
  return [{ what: 'direct connections are for routers', to, ports: [8003], from }]
}

/** Lists the other promises: what routers and steps need is not ruled; operator and NATS reach what they need, and no more. */
function ofOthers({ hasApiServerRange, natsServers, testPods, scope }: Facts): readonly Promised[] {
  const free = EVERYBODY
  const dns = [...free, OPERATOR, ...(natsServers > 1 ? [NATS] : [])]
  const byRange = hasApiServerRange ? free : [...free, OPERATOR]
  const byScope = scope !== undefined ? free : [...free, OPERATOR]
  const api = 'outside/api-server'
  const storage = 'outside/storage'
  const models = `${testPods}/test-models`
  return [
    { what: 'names', to: 'kube-system/dns', ports: [53], protocol: 'UDP', from: dns },
    { what: 'names', to: 'kube-system/dns', ports: [53], from: dns },
    { what: 'names alone', to: 'kube-system/dns', ports: [8080, 9153], from: free },
    { what: 'the API server', to: api, ports: [443, 6443], from: [...free, OPERATOR] },
    { what: 'the operator fetches no files', to: storage, ports: [80], from: free },
    { what: 'without a range any address', to: storage, ports: [443, 6443], from: byRange },
    { what: 'external NATS is for routers and steps', to: storage, ports: [4222], from: free },
    { what: 'files of helm test', to: models, ports: [8080], from: [`${testPods}/step`] },
    { what: 'it asks and is not asked', to: `${testPods}/test`, ports: [8080], from: [] },
    { what: 'where nothing is served', to: 'elsewhere/like-step', ports: [8002], from: byScope },
    { what: 'pods that are not ours', to: 'team-a/app', ports: [8000, 8002, 6222], from: free },
  ]
}

function allOf(namespace: string): string {
  return `${namespace}/*`
}

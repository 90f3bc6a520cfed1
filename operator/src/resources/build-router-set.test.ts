import { RouterSpec } from '@tutti/api'
import type { PlainObject } from '@tutti/kube/testing'
import t from 'tap'
import { digestOf } from '../runtime/canonical.ts'
import { routerDefaults } from '../testing/ensemble-rig.ts'
import { buildRouterSet } from './build-router-set.ts'
import type { RouterFacts } from './router-deployment.ts'
import { ROUTER_LABELS } from './router-names.ts'

const facts = (o: Partial<RouterFacts> = {}): RouterFacts => ({
  namespace: 'ns',
  defaults: routerDefaults(),
  spec: {},
  replicas: 2,
  ...o,
})

/**
 * Digest of the smallest router. Another digest means that all routers are replaced when the operator is upgraded: change it here
 * only if that is worth it.
 */
const TEMPLATE = 'fb8b4bb88c0a9eb64a352d29ca1580a8'

const specOf = (built: RouterFacts, kind: string): PlainObject => find(built, kind)?.['spec'] ?? {}

function consoleArgsOf(o: Partial<RouterFacts>): readonly string[] {
  const [main] = specOf(facts(o), 'Deployment')['template'].spec.containers
  return main.args.filter((arg: string) => /console|^8003$/.test(arg))
}

/** As the API server gets it. */
function find(built: RouterFacts, kind: string): PlainObject | undefined {
  const found = buildRouterSet(built, { ensembles: [] }).find(
    ({ resource }) => resource.kind === kind,
  )
  return found && JSON.parse(JSON.stringify(found.object))
}

await t.test('every member has the labels by which it is found again', async (t) => {
  const members = buildRouterSet(facts(), { ensembles: [] })
  t.equal(members.length, 9)
  for (const { resource, object } of members) {
    t.match(object.metadata, { namespace: 'ns', labels: ROUTER_LABELS }, resource.kind)
  }
})

await t.test(
  'pods fit the restricted Pod Security Standard, and have a token that may read what was accepted, and who is let in',
  async (t) => {
    const { template } = find(facts(), 'Deployment')?.['spec'] ?? {}
    const [main] = template.spec.containers
    t.match(template.spec, {
      automountServiceAccountToken: true,
      serviceAccountName: 'tutti-router',
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    })
    t.match(main, {
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
      readinessProbe: { httpGet: { path: '/readyz', port: 'metrics' } },
      lifecycle: { preStop: { sleep: { seconds: 5 } } },
    })
    t.match(find(facts(), 'ServiceAccount'), { automountServiceAccountToken: false })
    t.same(find(facts(), 'Role')?.['rules'], [
      { apiGroups: ['apps'], resources: ['controllerrevisions'], verbs: ['get', 'list', 'watch'] },
      {
        apiGroups: [''],
        resources: ['secrets'],
        resourceNames: ['tutti-router-edge'],
        verbs: ['get', 'list', 'watch'],
      },
    ])
  },
)

const rulesOf = (o: Partial<RouterFacts>) => find(facts(o), 'Role')?.['rules']

await t.test('a router with a console may also list what it shows the state of', async (t) => {
  const lists = { apiGroups: ['tutti.dev'], resources: ['models', 'ensembles'], verbs: ['list'] }
  const shown = routerDefaults({ console: 'Show' })
  t.match(rulesOf({ defaults: shown }), [{}, {}, lists])
  t.match(rulesOf({ spec: { console: 'Infer' } }), [{}, {}, lists])
  t.equal(rulesOf({ defaults: shown, spec: { console: 'None' } }).length, 2)
})

await t.test('an upgrade of the operator replaces no pods', async (t) => {
  t.equal(digestOf(specOf(facts(), 'Deployment')['template']), TEMPLATE)
})

await t.test('the spec reaches the pods', async (t) => {
  const spec = specOf(
    facts({
      defaults: routerDefaults({ metricsConfig: ['histogram_latencies=true'] }),
      replicas: 5,
      spec: {
        image: 'other:1',
        resources: { limits: { memory: '4Gi' } },
        nodeSelector: { disk: 'fast' },
        tolerations: [{ key: 'a', operator: 'Exists' }],
        maxInFlightRequests: 7,
        maxInFlightBytes: '8Ki',
        timeouts: { drain: '90s500ms' },
        logVerbose: 1,
      },
    }),
    'Deployment',
  )
  const [main] = spec['template'].spec.containers
  const args = main?.args ?? []
  const valueOf = (flag: string): string | undefined => args[args.indexOf(flag) + 1]
  t.match(spec, { replicas: 5, template: { spec: { nodeSelector: { disk: 'fast' } } } })
  t.same(spec['template'].spec.tolerations, [{ key: 'a', operator: 'Exists' }])
  t.equal(spec['template'].spec.terminationGracePeriodSeconds, 101)
  t.match(main, { image: 'other:1', resources: { limits: { memory: '4Gi' } } })
  t.equal(valueOf('--exit-timeout-secs'), '91')
  t.equal(valueOf('--max-inflight-requests'), '7')
  t.equal(valueOf('--max-inflight-bytes'), '8192')
  t.equal(valueOf('--log-verbose'), '1')
  t.equal(valueOf('--repository-name'), 'ns')
  t.ok(args.includes('--kubernetes'))
  t.equal(args.at(-1), '--metrics-config=histogram_latencies=true')
})

await t.test('a collector reaches the pods as variables', async (t) => {
  const endpoint = 'https://collector:4318/tenant'
  const env = (headersSecret?: string) => {
    const telemetry = { endpoint, sampleRatio: '0.1', headersSecret }
    const built = facts({ defaults: routerDefaults({ telemetry }) })
    return specOf(built, 'Deployment')['template'].spec.containers[0].env
  }
  const fieldRef = { apiVersion: 'v1', fieldPath: 'metadata.name' }
  t.same(env(), [
    { name: 'HOME', value: '/tmp' },
    { name: 'POD_NAME', valueFrom: { fieldRef } },
    { name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: endpoint },
    {
      name: 'OTEL_RESOURCE_ATTRIBUTES',
      value: 'k8s.namespace.name=ns,k8s.pod.name=$(POD_NAME)',
    },
    { name: 'OTEL_SERVICE_NAME', value: 'tutti-router' },
    { name: 'OTEL_TRACES_SAMPLER_ARG', value: '0.1' },
  ])
  const secretKeyRef = { name: 'collector', key: 'headers', optional: true }
  t.same(
    env('collector').find(({ name }: PlainObject) => name === 'OTEL_EXPORTER_OTLP_HEADERS'),
    { name: 'OTEL_EXPORTER_OTLP_HEADERS', valueFrom: { secretKeyRef } },
  )
})

await t.test('no field of a Router is without effect', async (t) => {
  // `builtins` has build-builtins-children.test.ts.
  const spec: Required<Omit<RouterSpec, 'builtins'>> = {
    scaling: { maxReplicas: 5 },
    image: 'other:1',
    resources: { limits: { memory: '4Gi' } },
    nodeSelector: { disk: 'fast' },
    tolerations: [{ key: 'a', operator: 'Exists' }],
    podTemplate: { spec: { priorityClassName: 'high' } },
    maxInFlightRequests: 7,
    maxInFlightBytes: 8,
    timeouts: { drain: '90s' },
    logVerbose: 1,
    clientNamespaces: ['apps'],
    stepTransport: 'TLS',
    console: 'Show',
  }
  t.same([...Object.keys(spec), 'builtins'].toSorted(), Object.keys(RouterSpec.shape).toSorted())
  const before = digestOf(buildRouterSet(facts(), { ensembles: [] }))
  for (const [field, value] of Object.entries(spec)) {
    const built = buildRouterSet(facts({ spec: RouterSpec.parse({ [field]: value }) }), {
      ensembles: [],
    })
    t.not(digestOf(built), before, field)
  }
})

await t.test(
  'the console is there if it is wanted, on the loopback of the pods alone',
  async (t) => {
    const shown = routerDefaults({ console: 'Show' })
    t.same(consoleArgsOf({}), [])
    t.same(consoleArgsOf({ defaults: shown }), ['--console-port', '8003'])
    t.same(consoleArgsOf({ defaults: shown, spec: { console: 'None' } }), [])
    const spec: RouterSpec = { console: 'Infer' }
    t.same(consoleArgsOf({ spec }), ['--console-port', '8003', '--console-infer'])
    for (const kind of ['NetworkPolicy', 'Service']) {
      t.same(find(facts({ spec }), kind), find(facts(), kind), 'no pod and no ingress reaches it')
    }
  },
)

await t.test('one pod has no disruption budget, and policies can be left out', async (t) => {
  t.notOk(find(facts({ spec: { scaling: { replicas: 1 } } }), 'PodDisruptionBudget'))
  const defaults = routerDefaults()
  const network = { ...defaults.network, isEnabled: false }
  t.notOk(find(facts({ defaults: { ...defaults, network } }), 'NetworkPolicy'))
})

await t.test('an HPA has the replicas of a Router with bounds, by its CPU', async (t) => {
  t.notOk(find(facts(), 'HorizontalPodAutoscaler'))
  const autoscalerOf = (spec: RouterSpec) =>
    specOf(facts({ replicas: undefined, spec }), 'HorizontalPodAutoscaler')
  const averageValueOf = (cpu: string | number): string =>
    autoscalerOf({ scaling: { maxReplicas: 8 }, resources: { limits: { cpu } } })['metrics'][0]
      .containerResource.target.averageValue
  const spec: RouterSpec = { scaling: { maxReplicas: 8 } }
  const containerResource = {
    name: 'cpu',
    container: 'main',
    target: { type: 'AverageValue', averageValue: '700m' },
  }
  t.same(autoscalerOf(spec), {
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'tutti-router' },
    minReplicas: 2,
    maxReplicas: 8,
    metrics: [{ type: 'ContainerResource', containerResource }],
  })
  t.same(
    [averageValueOf('500m'), averageValueOf(0.25), averageValueOf('1.5'), averageValueOf(4)],
    ['350m', '175m', '700m', '700m'],
    'where a pod may take less, it is busy earlier',
  )
  const deployment = specOf(facts({ replicas: undefined, spec }), 'Deployment')
  t.notOk('replicas' in deployment, 'nobody else writes them')
  const target = { type: 'AverageValue' as const, averageValue: '100' }
  const metrics = [{ type: 'Pods' as const, pods: { metric: { name: 'q' }, target } }]
  const behavior = { scaleDown: { stabilizationWindowSeconds: 60 } }
  const scaling = { minReplicas: 1, maxReplicas: 3, metrics, behavior }
  t.match(autoscalerOf({ scaling }), { minReplicas: 1, maxReplicas: 3, metrics, behavior })
})

await t.test('only the listeners for outside are open to everybody', async (t) => {
  const spec = specOf(facts({ spec: { clientNamespaces: ['apps'] } }), 'NetworkPolicy')
  const open = spec['ingress']?.filter(({ from }: PlainObject) => from === undefined)
  t.match(open, [{ ports: [{ port: 9000 }, { port: 9001 }] }])
  t.match(spec['ingress']?.[0]?.from, [
    { podSelector: {} },
    { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'apps' } } },
  ])
})

await t.test('the routes for outside do not depend on an order', async (t) => {
  const identities = [{ name: 'token', tokenSha256: '0f'.repeat(32) }]
  const exposed = [
    { modelName: 'b', hosts: ['y', 'x'], lock: { identities }, revision: 'r1' },
    { modelName: 'a', hosts: ['x'], lock: {}, revision: 'r2' },
  ]
  const textOf = (list: typeof exposed): string => {
    const found = buildRouterSet(facts(), { ensembles: list }).find(
      ({ resource }) => resource.kind === 'Secret',
    )
    const object: PlainObject = { ...found?.object }
    return Buffer.from(object['data']['edge.json'], 'base64').toString()
  }
  const text = textOf(exposed)
  t.equal(textOf(exposed.toReversed()), text)
  t.match(JSON.parse(text), {
    routes: [{ models: ['a'] }, { models: ['b'], hosts: ['x', 'y'], identities }],
  })
})

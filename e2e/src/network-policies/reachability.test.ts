// needs: apiserver
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { type ApiServer, withoutKube } from '@tutti/kube/testing'
import { nkeys } from 'nats'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { operatorOf, startChartCluster } from '../chart/chart-pods.ts'
import { OVERLAYS, type Rendered, render } from '../chart/helm.ts'
import type { NamedPort, Party, Pod } from './connection.ts'
import { isAllowed, type Network } from './is-allowed.ts'
import { type Labels, toNetworkPolicy } from './network-policy.ts'
import { bystander, componentOf, podsOf } from './pods-of-manifests.ts'
import { type Facts, type Promised, promisesOf } from './promises.ts'
import { serveNamespaces, setRouter, TENANTS } from './served-namespaces.ts'

const WITH_KUBE = { skip: withoutKube('helm') }

const STEP_LABELS = {
  'app.kubernetes.io/managed-by': 'tutti-operator',
  'app.kubernetes.io/component': 'step',
}
const OPERATOR_LABEL = { 'app.kubernetes.io/component': 'operator' }
const DNS_PORTS: readonly NamedPort[] = [{ name: 'dns', port: 53, protocol: 'UDP' }]

/** Who is in the cluster beside Tutti. The last two carry labels that are not theirs. */
const BYSTANDERS: readonly Pod[] = [
  bystander('team-a/app'),
  bystander('team-b/app'),
  bystander('apps/app'),
  bystander('monitoring/prometheus', { 'app.kubernetes.io/name': 'prometheus' }),
  bystander('ingress/traefik', { 'app.kubernetes.io/name': 'traefik' }),
  bystander('kube-system/dns', { 'k8s-app': 'kube-dns' }, DNS_PORTS),
  bystander('tutti-system/other'),
  bystander('elsewhere/stranger'),
  bystander('elsewhere/like-operator', { ...OPERATOR_LABEL, 'app.kubernetes.io/part-of': 'tutti' }),
  bystander('tutti-system/other-operator', OPERATOR_LABEL),
]

/** Carries the labels of a step: where all namespaces are served it reaches NATS, and is refused there for want of a credential. */
const LIKE_STEP = bystander('elsewhere/like-step', STEP_LABELS)

const ADDRESSES: Readonly<Record<string, string>> = {
  'outside/api-server': '10.0.0.1',
  'outside/storage': '198.51.100.9',
  'outside/client': '203.0.113.7',
  'outside/client-6': '2001:db8::7',
  'outside/other-node': '192.168.0.2',
}

const NAMESPACES = [
  ...new Set([...BYSTANDERS.map(({ namespace }) => namespace), 'serving-test']),
].filter((name) => name !== 'tutti-system' && name !== 'kube-system')

/** By name, `namespace/component` for pods; of a StatefulSet, or of several Models, there are several. */
type Cast = readonly (readonly [string, Party])[]

function castOf(objects: readonly Rendered[]): Cast {
  const pods = podsOf(objects).map((pod) => [`${pod.namespace}/${componentOf(pod)}`, pod] as const)
  const others = BYSTANDERS.map((pod) => [`${pod.namespace}/${pod.name}`, pod] as const)
  const addresses = Object.entries(ADDRESSES).map(
    ([name, ip]) => [name, { kind: 'address', ip }] as const,
  )
  return [...pods, ...others, ['elsewhere/like-step', LIKE_STEP], ...addresses]
}

/** Components whose egress is ruled. */
const HELD = /^tutti-system\/(operator|nats)$|\/test-models$/

/** Whether a row's `from` means this party. */
function isMeant(pattern: string, name: string): boolean {
  if (pattern === name) return true
  if (HELD.test(name)) return false
  const [namespace, rest] = pattern.split('/')
  const isOutside = name.startsWith('outside/')
  if (pattern === 'outside') return isOutside
  if (pattern === 'pods') return !isOutside
  if (namespace === '*') return name.endsWith(`/${rest}`) || name === 'elsewhere/like-step'
  return rest === '*' && name.startsWith(`${namespace}/`)
}

/** Holds a row against the network; the names that should reach it, and those that do. */
function check(t: Test, network: Network, cast: Cast, row: Promised): void {
  const targets = cast.filter(([name]) => name === row.to)
  t.ok(targets.length > 0, `there is a ${row.to}`)
  for (const [, to] of targets) {
    // A pod always reaches itself.
    const others = cast.filter(([, from]) => from !== to)
    const wanted = others.filter(([name]) => row.from.some((pattern) => isMeant(pattern, name)))
    for (const port of row.ports) {
      const protocol = row.protocol ?? 'TCP'
      const able = others.filter(([, from]) => isAllowed(network, { from, to, port, protocol }))
      const what = `${row.to}:${port}/${protocol}: ${row.what}`
      t.same(namesOf(able), namesOf(wanted), what)
    }
  }
}

function namesOf(cast: Cast): readonly string[] {
  return cast.map(([name]) => name).toSorted()
}

function factsOf(overlay: string, chart: readonly Rendered[]): Facts {
  const values: Rendered = parse(readFileSync(overlay, 'utf8'))
  const nats = chart.find(({ kind }) => kind === 'StatefulSet')
  const testPods = chart.find(({ kind }) => kind === 'Ensemble')?.['metadata'].namespace
  return {
    scope: values['scope']?.namespaces,
    testNamespace: TENANTS.includes(testPods) ? undefined : testPods,
    testPods,
    scrapers: values['networkPolicy']?.scrapeNamespaces ?? [],
    natsServers: nats?.['spec'].replicas ?? 0,
    hasApiServerRange: values['networkPolicy']?.apiServerCIDR !== undefined,
  }
}

/** As the API server labels them. */
async function namespacesOf({ plain }: ApiServer): Promise<Readonly<Record<string, Labels>>> {
  const found = await plain.list('/api/v1/namespaces')
  return Object.fromEntries(found.map(({ metadata }) => [metadata.name, metadata.labels]))
}

async function makeNamespaces(server: ApiServer): Promise<void> {
  const { plain } = server
  for (const name of NAMESPACES) await plain.create('/api/v1/namespaces', { metadata: { name } })
  await setRouter(server, 'team-a', { clientNamespaces: ['apps'], stepTransport: 'TLS' })
  for (const name of ['tutti-system', 'serving-test']) {
    await setRouter(server, name, { clientNamespaces: ['*'] })
  }
  const account = nkeys.createAccount()
  const decoder = new TextDecoder()
  await plain.create('/api/v1/namespaces/tutti-system/secrets', {
    metadata: { name: 'nats-issuer' },
    stringData: {
      'account.pub': account.getPublicKey(),
      'signing.nk': decoder.decode(nkeys.createAccount().getSeed()),
      'ca.crt': 'PEM',
    },
  })
}

await t.test('who reaches whom, by the policies that are made', WITH_KUBE, async (t) => {
  const server = await startChartCluster(t, await render())
  await makeNamespaces(server)
  const namespaces = await namespacesOf(server)
  for (const overlay of OVERLAYS) {
    await t.test(basename(overlay), async (t) => {
      const chart = await render({}, `--values=${overlay}`)
      const served = await serveNamespaces(t, server, chart)
      const objects = [...chart, ...served]
      const cast = castOf(objects)
      const policies = objects.filter(({ kind }) => kind === 'NetworkPolicy').map(toNetworkPolicy)
      const { args } = operatorOf(chart)['spec'].template.spec.containers[0]
      if (args.includes('--network-policies=false')) {
        t.same(policies, [], 'none are made')
        return
      }
      for (const row of promisesOf(factsOf(overlay, chart))) {
        check(t, { namespaces, policies }, cast, row)
      }
      checkTokens(t, served)
    })
  }
})

/** Steps may reach the API server as they may reach anything, but have nothing to say there. */
function checkTokens(t: Test, served: readonly Rendered[]): void {
  for (const { kind, metadata, spec } of served) {
    if (kind !== 'Deployment') continue
    const isRouter = metadata.labels['app.kubernetes.io/component'] === 'router'
    const { automountServiceAccountToken: hasToken } = spec.template.spec
    t.equal(hasToken, isRouter, `${metadata.namespace}/${metadata.name}: a token`)
  }
}

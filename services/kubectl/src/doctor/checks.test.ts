import { readFileSync } from 'node:fs'
import type { Stored } from '@tutti/kube'
import t from 'tap'
import { parse } from 'yaml'
import manifest from '../../package.json' with { type: 'json' }
import type { ModelObject } from '../resources.ts'
import { checkKubernetes, OLDEST_KUBERNETES, toOperatorFinding } from './installation-checks.ts'
import { checkDevices, checkMetrics, checkWatched } from './namespace-checks.ts'

const CHART = new URL('../../../../charts/tutti/Chart.yaml', import.meta.url)
const CREATED = '2026-11-27T09:00:00Z'

const model = (name: string, more: Pick<ModelObject, 'spec' | 'status'> = {}) => {
  const metadata = { name, namespace: 'shop', uid: name, resourceVersion: '1' }
  const object: Stored<ModelObject> = {
    apiVersion: 'tutti.dev/v1alpha1',
    kind: 'Model',
    metadata: { ...metadata, creationTimestamp: CREATED },
    ...more,
  }
  return object
}
const namespaceOf = (...models: readonly Stored<ModelObject>[]) => ({
  namespace: 'shop',
  models,
  ensembles: [],
  routers: [],
})

const scaledBy = (...types: readonly string[]) => ({
  spec: { scaling: { provider: 'HPA', metrics: types.map((type) => ({ type })) } },
})
/** Returns what is found of an operator of a version with so many pods. */
const operatorOf = (text: string, availableReplicas: number) => {
  const { metadata } = model('tutti-operator')
  const labels = { 'app.kubernetes.io/version': text }
  const template = { metadata: {}, spec: { containers: [] } }
  return toOperatorFinding({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { ...metadata, labels },
    spec: { replicas: 2, selector: {}, template },
    status: { availableReplicas },
  })
}

await t.test('Kubernetes must be as new as the chart wants it', (t) => {
  const { kubeVersion } = parse(readFileSync(CHART, 'utf8'))
  const { major, minor } = OLDEST_KUBERNETES
  t.equal(kubeVersion, `>=${major}.${minor}.0-0`)
  t.match(checkKubernetes(`v${major}.${minor}.0`), { status: 'ok' })
  t.match(checkKubernetes('v1.33.2+k3s1'), { status: 'ok' })
  t.match(checkKubernetes('v2.0.0'), { status: 'ok' })
  t.match(checkKubernetes('v1.30.14-gke.1'), {
    status: 'missing',
    found: /v1\.30\.14-gke\.1/,
    mending: /Kubernetes 1\.31 or newer/,
  })
  t.match(checkKubernetes('unknown'), { status: 'missing' })
  t.end()
})

await t.test('an operator of another version than this program is named', (t) => {
  t.match(operatorOf(manifest.version, 1), { status: 'ok', found: /: 1 of 2 pods available/ })
  t.match(operatorOf('0.0.1', 1), { status: 'note', mending: /upgrade the chart/ })
  t.match(operatorOf(manifest.version, 0), { status: 'missing', mending: /logs deployment/ })
  t.end()
})

await t.test('a namespace that no operator serves is found by what it has', (t) => {
  const seen = model('seen', { status: { observedGeneration: 1 } })
  const created = Date.parse(CREATED)
  const two = namespaceOf(seen, model('unseen'))
  t.match(checkWatched(two, created + 30_000), { status: 'ok', found: /2 Models and 0 Ensembles/ })
  t.match(checkWatched(namespaceOf(seen), created), { status: 'ok', found: /has 1 Model and 0 / })
  t.match(checkWatched(namespaceOf(), created), { status: 'note', mending: /name is right/ })
  t.match(checkWatched(two, created + 90_000), {
    status: 'missing',
    found: 'no operator has looked at 1 of 2 resources in shop',
    mending: /scope\.namespaces/,
    neededBy: ['unseen'],
  })
  t.end()
})

await t.test('nodes need no devices for Models that claim theirs', async (t) => {
  const reader = { list: () => Promise.resolve([]), refused: new Map() }
  const claiming = model('claims', { spec: { accelerator: { claims: [{}] } } })
  const found = (...models: readonly Stored<ModelObject>[]) =>
    checkDevices(namespaceOf(...models), reader)
  t.match(await found(claiming), [{ status: 'note', found: /nvidia\.com\/gpu/ }])
  t.match(await found(claiming, model('gpu', { spec: { accelerator: {} } })), [
    { status: 'missing', neededBy: ['gpu'] },
  ])
})

await t.test('each source of metrics that an HPA reads is looked for', (t) => {
  const models = namespaceOf(
    model('a', scaledBy('Resource', 'ContainerResource', 'Pods')),
    model('b', scaledBy('Object', 'External')),
    model('native', { spec: { scaling: { metrics: [{ type: 'External' }] } } }),
  )
  t.match(checkMetrics(models, new Set(['custom.metrics.k8s.io'])), [
    { status: 'missing', neededBy: ['a'], mending: /metrics-server/ },
    { status: 'ok', found: /custom\.metrics/ },
    { status: 'missing', neededBy: ['b'], mending: /KEDA/ },
  ])
  t.match(checkMetrics(namespaceOf(), new Set()), [{ status: 'note' }])
  const { metadata } = model('default')
  const router = (scaling: object) => ({
    ...namespaceOf(),
    routers: [{ apiVersion: 'tutti.dev/v1alpha1', kind: 'Router', metadata, spec: { scaling } }],
  })
  const missing = { status: 'missing', neededBy: ['Router default'], mending: /metrics-server/ }
  t.match(checkMetrics(router({ maxReplicas: 3 }), new Set()), [missing])
  t.match(checkMetrics(router({ replicas: 3 }), new Set()), [{ status: 'note' }])
  const custom = router({ provider: 'HPA', metrics: [{ type: 'Pods' }] })
  t.match(checkMetrics(custom, new Set()), [{ status: 'note' }, { mending: /an adapter/ }])
  t.end()
})

import { SERVICE_ACCOUNT } from '@tutti/kube'
import t from 'tap'
import { build, child, deployment, LABELS, POD_LABELS, type Spec } from '../testing/build-model.ts'
import { stepSettings } from '../testing/step-settings.ts'

const SELECTOR = { 'app.kubernetes.io/component': 'step', 'tutti.dev/model': 'yolo' }
const METADATA = { name: 'yolo-step', namespace: 'vision', labels: LABELS }

/**
 * Digests of the smallest Model, and of one that has whatever reaches its pods. Another digest means that all such pods are replaced
 * when the operator is upgraded: change it here only if that is worth it.
 */
const SMALLEST_TEMPLATE = '9d7344a548353c7fca372f0b2170d1cc'
const LARGEST_TEMPLATE = 'd8863438c39b389081da3424b2ff09d5'

const IMAGE = { name: 'image', datatype: 'FP32' as const, shape: [3, -1] }
const LARGEST: Spec = {
  modelFormat: { name: 'python' },
  modelName: 'yolo_v8.1',
  storageUri: 's3://models/yolo',
  storage: { digest: `sha256:${'a'.repeat(64)}`, secretRef: { name: 'aws' } },
  maxBatchSize: 8,
  inputs: [IMAGE],
  outputs: [{ name: 'boxes', datatype: 'FP32', shape: [-1, 4] }],
  versionPolicy: { latest: { numVersions: 2 } },
  instances: { count: 2, kind: 'KIND_GPU' },
  batching: { preferredBatchSizes: [4], maxQueueDelay: '1ms', maxQueueLength: 16 },
  warmup: [{ name: 'first', batchSize: 4, count: 2, inputs: [{ ...IMAGE, data: 'Random' }] }],
  resources: { requests: { cpu: '500m' }, limits: { memory: '2Gi' } },
  accelerator: {
    count: 2,
    runtimeClassName: 'nvidia',
    nodeSelector: { zone: 'a' },
    tolerations: [{ key: 'gpu', operator: 'Exists' }],
  },
  timeouts: { load: '5m', drain: '1m' },
  podTemplate: {
    metadata: { labels: { team: 'a' }, annotations: { note: 'b' } },
    spec: { containers: [{ name: 'main', env: [{ name: 'A', value: 'b' }] }] },
  },
}

const handsOver = (fields: Spec) =>
  build(fields).find(({ resource }) => resource.kind === 'Deployment')?.handsOverReplicas

const budget = (fields: Spec) => child(build(fields), 'PodDisruptionBudget')

const TCP = { protocol: 'TCP', appProtocol: 'http' }

await t.test('the smallest Model has these children', async (t) => {
  const children = build()
  t.same(
    children.map(({ resource }) => resource.kind),
    ['ServiceAccount', 'NetworkPolicy', 'Service', 'Deployment'],
  )
  t.same(children.at(-1)?.needs, [SERVICE_ACCOUNT], 'without which no pod is made')
  t.same(child(children, 'ServiceAccount'), {
    metadata: METADATA,
    automountServiceAccountToken: false,
  })
  t.same(child(children, 'Service'), {
    metadata: METADATA,
    spec: {
      clusterIP: 'None',
      selector: { 'app.kubernetes.io/component': 'step', 'model.tutti.dev/yolo': 'true' },
      ports: [
        {
          name: 'grpc',
          port: 8001,
          targetPort: 'grpc',
          protocol: 'TCP',
          appProtocol: 'kubernetes.io/h2c',
        },
        { ...TCP, name: 'http', port: 8000, targetPort: 'http' },
        { ...TCP, name: 'metrics', port: 8002, targetPort: 'metrics' },
      ],
    },
  })
  t.same(child(children, 'NetworkPolicy'), {
    metadata: METADATA,
    spec: {
      podSelector: { matchLabels: SELECTOR },
      policyTypes: ['Ingress'],
      ingress: [
        {
          from: [{ podSelector: {} }],
          ports: [
            { port: 8000, protocol: 'TCP' },
            { port: 8001, protocol: 'TCP' },
          ],
        },
        {
          from: [
            { podSelector: {} },
            {
              namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'tutti-system' } },
              podSelector: { matchLabels: { 'app.kubernetes.io/name': 'tutti-operator' } },
            },
          ],
          ports: [{ port: 8002, protocol: 'TCP' }],
        },
      ],
    },
  })
  const { template, ...rest } = deployment().spec
  t.same(rest, {
    replicas: 1,
    selector: { matchLabels: SELECTOR },
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    progressDeadlineSeconds: 1200,
    revisionHistoryLimit: 3,
  })
  t.same(template.metadata, {
    labels: POD_LABELS,
    annotations: { 'tutti.dev/template': SMALLEST_TEMPLATE },
  })
})

await t.test('an upgrade of the operator replaces no pods', async (t) => {
  // With one image for all formats, as an installation has it that names `step.image`.
  const settings = { pythonImage: stepSettings().image }
  const { template } = deployment(LARGEST, { credentialsDigest: 'c1', settings }).spec
  t.equal(template.metadata?.annotations?.['tutti.dev/template'], LARGEST_TEMPLATE)
})

await t.test('replicas are written only where the operator owns them', async (t) => {
  const metrics = [
    {
      type: 'Resource' as const,
      resource: { name: 'cpu', target: { type: 'Utilization' as const, averageUtilization: 70 } },
    },
  ]
  const scaling = { provider: 'HPA' as const, minReplicas: 2, maxReplicas: 6, metrics }
  t.notOk('replicas' in deployment({ scaling }).spec)
  t.equal(handsOver({ scaling }), true)
  t.equal(handsOver({}), false)
  t.same(child(build({ scaling }), 'HorizontalPodAutoscaler'), {
    metadata: METADATA,
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'yolo-step' },
      minReplicas: 2,
      maxReplicas: 6,
      metrics,
    },
  })
  t.equal(deployment({ scaling: { provider: 'None' } }, { live: 3 }).spec.replicas, 1)
  t.equal(deployment({ scaling: { provider: 'None', replicas: 0 } }).spec.replicas, 0)
  t.equal(deployment({ scaling: { maxReplicas: 4 } }, { live: 3 }).spec.replicas, 3)
})

await t.test('a budget for drains, as asked for or where there may be several pods', async (t) => {
  t.notOk(budget({}))
  const spec = { selector: { matchLabels: SELECTOR }, unhealthyPodEvictionPolicy: 'AlwaysAllow' }
  t.same(budget({ scaling: { maxReplicas: 2 } }), {
    metadata: METADATA,
    spec: { ...spec, maxUnavailable: 1 },
  })
  t.same(budget({ disruptionBudget: { minAvailable: '50%' } }), {
    metadata: METADATA,
    spec: { ...spec, minAvailable: '50%' },
  })
})

await t.test('the same Model gives the same text', async (t) => {
  const fields: Spec = { scaling: { maxReplicas: 4 }, accelerator: {}, resources: {} }
  t.equal(JSON.stringify(build(fields)), JSON.stringify(build(fields)))
})

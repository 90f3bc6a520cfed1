import t from 'tap'
import {
  type BuildOptions,
  deployment,
  LABELS,
  main,
  POD_LABELS,
  type Spec,
} from '../testing/build-model.ts'
import { podLabelsOf } from './step-labels.ts'

const resourcesOf = (fields: Spec, o?: BuildOptions) => main(fields, o)?.resources

await t.test('what a Model says nothing of is requested for its engine', async (t) => {
  for (const [name, memory] of [
    ['onnx', '256Mi'],
    ['python', '384Mi'],
    ['pytorch', '768Mi'],
  ] as const) {
    t.same(resourcesOf({ modelFormat: { name } }), { requests: { cpu: '100m', memory } }, name)
  }
  const resources = { requests: { cpu: '2' }, limits: { memory: '128Mi' } }
  t.same(resourcesOf({ resources }), resources, 'a limit alone requests as much')
  const podDefaults = {
    resources: { requests: { cpu: '1', 'ephemeral-storage': '1Gi' }, limits: { memory: '1Gi' } },
  }
  const settings = { settings: { podDefaults } }
  t.same(resourcesOf({}, settings), podDefaults.resources)
  t.same(resourcesOf({ resources: { requests: { memory: '4Gi' } } }, settings), {
    requests: { cpu: '1', 'ephemeral-storage': '1Gi', memory: '4Gi' },
  })
})

await t.test('labels of the Model reach its pods', async (t) => {
  const labels = { team: 'a', 'kueue.x-k8s.io/queue-name': 'gpus' }
  const template = { metadata: { labels: { team: 'b' } } }
  const podLabels = (fields: Spec) => deployment(fields, { labels }).spec.template.metadata?.labels
  t.same(podLabels({}), { ...labels, ...POD_LABELS })
  t.equal(podLabels({ podTemplate: template })?.['team'], 'b', 'its podTemplate counts more')
  const others = {
    'app.kubernetes.io/instance': 'release',
    'helm.sh/chart': 'a-1.2.3',
    'argocd.argoproj.io/instance': 'app',
    'kustomize.toolkit.fluxcd.io/name': 'app',
    'tutti.dev/model': 'other',
  }
  t.same(podLabelsOf({ ...labels, ...others }), labels, 'not those of its tools, and of Tutti')
})

await t.test('what the installation adds to pods stands below what the Model says', async (t) => {
  const podDefaults = {
    podTemplate: {
      metadata: { labels: { team: 'a', zone: 'x' }, annotations: { mesh: 'on' } },
      spec: {
        priorityClassName: 'low',
        tolerations: [{ key: 'models', operator: 'Exists' }],
        containers: [{ name: 'main', env: [{ name: 'HTTPS_PROXY', value: 'http://proxy:3128' }] }],
      },
    },
  }
  const podTemplate = {
    metadata: { labels: { team: 'b' } },
    spec: { priorityClassName: 'high', tolerations: [{ key: 'gpu', operator: 'Exists' }] },
  }
  const { metadata, spec } = deployment({ podTemplate }, { settings: { podDefaults } }).spec
    .template
  t.match(metadata, { labels: { team: 'b', zone: 'x', ...LABELS }, annotations: { mesh: 'on' } })
  t.match(spec, {
    priorityClassName: 'high',
    tolerations: [{ key: 'models' }, { key: 'gpu' }],
    containers: [{ env: [{ name: 'HOME' }, { name: 'HTTPS_PROXY' }] }],
  })
})

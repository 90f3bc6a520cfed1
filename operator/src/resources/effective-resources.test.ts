import { ModelSpec } from '@tutti/api'
import t from 'tap'
import { deployment, type Spec } from '../testing/build-model.ts'
import { stepSettings } from '../testing/step-settings.ts'
import { toEffectiveResources } from './effective-resources.ts'
import { toModelFacts } from './model-facts.ts'
import type { PodDefaults } from './pod-defaults.ts'
import { groupOfModel } from './pod-group.ts'

function find(fields: Spec, podDefaults?: PodDefaults) {
  const settings = podDefaults === undefined ? {} : { podDefaults }
  const spec = ModelSpec.parse({
    modelFormat: { name: 'onnx' },
    storageUri: 'pvc://x/y',
    ...fields,
  })
  const { template } = deployment(fields, { settings }).spec
  const facts = { name: 'yolo', namespace: 'vision', spec, settings: stepSettings(settings) }
  return toEffectiveResources(groupOfModel(toModelFacts(facts)), template)
}

const inPodTemplate = (resources: object): Spec => ({
  podTemplate: { spec: { containers: [{ name: 'main', resources }] } },
})

await t.test('each resource is told with its source', (t) => {
  t.same(find({}), {
    requests: { cpu: '100m', memory: '256Mi' },
    from: 'cpu, memory: default of the engine onnxruntime',
  })
  const defaults = { resources: { requests: { cpu: '1' }, limits: { 'ephemeral-storage': '1Gi' } } }
  const fields: Spec = {
    accelerator: { count: 2 },
    resources: { limits: { memory: '2Gi' } },
  }
  t.same(find(fields, defaults), {
    requests: { cpu: '1' },
    limits: { 'ephemeral-storage': '1Gi', memory: '2Gi', 'nvidia.com/gpu': '2' },
    from: 'cpu, ephemeral-storage: step.defaults of the chart; memory: spec.resources; nvidia.com/gpu: the devices of the spec',
  })
  t.end()
})

await t.test(
  'what a podTemplate says counts, and what is no amount is left to the API server',
  (t) => {
    t.same(find(inPodTemplate({ requests: { cpu: 2 }, limits: { hugepages: '1Gi' } })), {
      requests: { cpu: 2, memory: '256Mi' },
      limits: { hugepages: '1Gi' },
      from: 'cpu, hugepages: a podTemplate; memory: default of the engine onnxruntime',
    })
    t.equal(find(inPodTemplate({ requests: { cpu: 'much' } })), undefined)
    t.end()
  },
)

import { EnsembleSpec, ModelSpec, POD_FIELDS } from '@tutti/api'
import type { PodSpec } from '@tutti/kube'
import t, { type Test } from 'tap'
import { POD_CHANGES } from '../testing/model-changes.ts'
import { withField } from '../testing/schema-leaves.ts'
import { stepSettings } from '../testing/step-settings.ts'
import { buildGroupChildren, buildGuestChildren, buildHeadless } from './build-model-children.ts'
import { type ModelFacts, toModelFacts } from './model-facts.ts'
import { toScaling } from './model-scaling.ts'
import { buildPodTemplate } from './model-template.ts'
import { type EnsembleHost, groupOfEnsemble, groupOfModel } from './pod-group.ts'

const settings = stepSettings({
  cudaImage: 'registry.example/tutti-step-cuda:1.0.0',
  pythonCudaImage: 'registry.example/tutti-step-python-cuda:1.0.0',
})

function facts(name: string, fields: object = {}, more: Partial<ModelFacts> = {}): ModelFacts {
  const spec = ModelSpec.parse({
    modelFormat: { name: 'onnx' },
    storageUri: `https://models.example/${name}.tar`,
    ...fields,
  })
  return { ...toModelFacts({ name, namespace: 'vision', spec, settings }), ...more }
}

function pods(host: ModelFacts, ...guests: readonly ModelFacts[]) {
  const { metadata, spec } = buildPodTemplate(groupOfModel(host, guests))
  const [main] = spec.containers
  if (main === undefined) throw new Error('want a container')
  return { metadata, spec, main }
}

await t.test('the pods of a host have the files, flags and gates of its guests too', async (t) => {
  const host = facts(
    'detect',
    { storage: { secretRef: { name: 'aws' } } },
    { credentialsDigest: 'd1' },
  )
  const fetched = facts(
    'crop',
    { modelName: 'crop:v1', storage: { secretRef: { name: 'gcs' } }, runsWith: 'detect' },
    { credentialsDigest: 'd2' },
  )
  const image = facts('read', {
    storageUri: 'image://registry.example/models:1/read',
    storage: { digest: `sha256:${'a'.repeat(64)}` },
    runsWith: 'detect',
  })
  const { metadata = {}, spec, main } = pods(host, fetched, image)
  t.match(metadata.labels, {
    'tutti.dev/model': 'detect',
    'model.tutti.dev/detect': 'true',
    'model.tutti.dev/crop': 'true',
    'model.tutti.dev/read': 'true',
  })
  t.equal(metadata.annotations?.['tutti.dev/credentials'], 'd1 d2')
  t.same(
    spec.readinessGates?.map(({ conditionType }) => conditionType),
    ['accepted.tutti.dev/detect', 'accepted.tutti.dev/crop', 'accepted.tutti.dev/read'],
  )
  t.same(
    spec.initContainers?.map(({ name }) => name),
    ['fetch', 'fetch-crop', 'fetch-read', 'verify-read'],
  )
  t.match(spec.initContainers?.[1], {
    args: ['fetch', '--uri', /crop/, '--to', '/models/crop%3Av1'],
    volumeMounts: [
      { name: 'model-crop', mountPath: '/models' },
      { name: 'credentials-crop', mountPath: '/var/run/tutti/credentials', readOnly: true },
    ],
  })
  const directories = main.args?.filter((_, i, args) => args[i - 1] === '--model-directory')
  t.same(directories, ['detect=/models/detect', 'crop:v1=/models/crop%3Av1', 'read=/models/read'])
  t.same(main.volumeMounts?.slice(0, 3), [
    { name: 'model', mountPath: '/models/detect', readOnly: true, subPath: 'detect' },
    { name: 'model-crop', mountPath: '/models/crop%3Av1', readOnly: true, subPath: 'crop%3Av1' },
    { name: 'model-read', mountPath: '/models/read', readOnly: true },
  ])
  checkVolumes(t, spec)
})

function checkVolumes(t: Test, { initContainers = [], containers, volumes = [] }: PodSpec): void {
  const names = volumes.map(({ name }) => name)
  t.equal(new Set(names).size, names.length, 'each volume has a name of its own')
  const mounted = [...initContainers, ...containers].flatMap(({ volumeMounts = [] }) =>
    volumeMounts.map(({ name }) => name),
  )
  t.ok(mounted.every((name) => names.includes(name)))
}

await t.test('Models that are on one claim share its volume', async (t) => {
  const storage = { digest: `sha256:${'a'.repeat(64)}` }
  const runsWith = 'detect'
  const { spec, main } = pods(
    facts('detect', { storageUri: 'pvc://models/detect', storage }),
    facts('crop', { storageUri: 'pvc://models/crop', storage, runsWith }),
    facts('read', { storageUri: 'pvc://others/read', storage, runsWith }),
  )
  const claims = spec.volumes?.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim ?? [])
  t.same(
    claims?.map(({ claimName }) => claimName),
    ['models', 'others'],
    'a pod with two volumes of one claim never starts',
  )
  t.match(main.volumeMounts, [
    { name: 'model', mountPath: '/models/detect', subPath: 'detect' },
    { name: 'model', mountPath: '/models/crop', subPath: 'crop' },
    { name: 'model-read', mountPath: '/models/read', subPath: 'read' },
  ])
  t.match(spec.initContainers?.[1]?.volumeMounts, [{ name: 'model', subPath: 'crop' }])
  checkVolumes(t, spec)
})

await t.test(
  'resources add up, devices are those of the host, the image can run all',
  async (t) => {
    const host = facts('detect', {
      accelerator: { count: 2 },
      resources: { requests: { cpu: '1' }, limits: { memory: '2Gi', cpu: '4' } },
    })
    const guest = facts('crop', {
      modelFormat: { name: 'python' },
      resources: { requests: { cpu: '250m', memory: '512Mi' }, limits: { memory: '1Gi' } },
      runsWith: 'detect',
    })
    const { main, spec } = pods(host, guest)
    t.equal(main.image, 'registry.example/tutti-step-python-cuda:1.0.0')
    t.same(main.resources, {
      requests: { cpu: '1250m', memory: '2560Mi' },
      limits: { memory: '3Gi', 'nvidia.com/gpu': '2' },
    })
    t.ok(main.args?.includes('--accelerator=nvidia.com/gpu=2'))
    const shm = spec.volumes?.find(({ name }) => name === 'shm')
    t.equal(shm?.emptyDir?.sizeLimit, '3Gi', 'as the guest may use shared memory')
    const onGpu = facts('crop', { instances: { kind: 'KIND_GPU', count: 1 }, runsWith: 'detect' })
    t.match(pods(facts('detect'), onGpu).main.resources, { limits: { 'nvidia.com/gpu': '1' } })
  },
)

await t.test('the longest of the time limits counts', async (t) => {
  const host = facts('detect', { timeouts: { load: '2m', drain: '90s' } })
  const guest = facts('crop', { timeouts: { load: '20m' }, runsWith: 'detect' })
  const { main, spec } = pods(host, guest)
  t.equal(main.startupProbe?.failureThreshold, 1260)
  t.equal(spec.terminationGracePeriodSeconds, pods(host).spec.terminationGracePeriodSeconds)
})

await t.test('a guest has a Service of its own that leads to the pods of its host', async (t) => {
  const host = facts('detect')
  const guest = facts('crop', { runsWith: 'detect' })
  const group = groupOfModel(host, [guest])
  const children = buildGroupChildren(group, {
    scaling: toScaling(host.spec),
    replicas: 1,
    services: [buildHeadless(host)],
  })
  const deployment = children.find(({ resource }) => resource.kind === 'Deployment')?.object
  t.match(deployment?.metadata.labels, { 'model.tutti.dev/crop': 'true' }, 'so that it is seen')
  const own = buildGuestChildren(guest)
  t.match(own, [
    {
      object: {
        metadata: { name: 'crop-step', labels: { 'tutti.dev/model': 'crop' } },
        spec: {
          clusterIP: 'None',
          selector: { 'app.kubernetes.io/component': 'step', 'model.tutti.dev/crop': 'true' },
        },
      },
    },
  ])
  t.equal(own.length, 1)
})

/** The objects around the pods of an Ensemble with these fields. */
function ofEnsemble(fields: object, o: Partial<EnsembleHost> = {}): string {
  const ensemble = EnsembleSpec.parse({
    inputs: [{ name: 'image', datatype: 'FP32', shape: [3] }],
    outputs: [{ name: 'boxes', from: 'detect.boxes' }],
    steps: [{ name: 'detect', modelRef: { name: 'detect' }, inputMap: { image: 'image' } }],
    placement: 'Together',
    ...fields,
  })
  const more = { settings, labels: {}, hasBuiltins: false, ...o }
  const host = { name: 'faces', namespace: 'vision', spec: ensemble, ...more }
  const group = groupOfEnsemble(host, [facts('crop'), facts('detect')])
  const scaling = toScaling(ensemble)
  const replicas = scaling.provider === 'Native' ? scaling.min : undefined
  return JSON.stringify(buildGroupChildren(group, { scaling, replicas, services: [] }))
}

await t.test('each field about the pods of an Ensemble reaches them', async (t) => {
  for (const { path, from, to, rest } of POD_CHANGES) {
    const before = withField(rest, path, from)
    t.not(ofEnsemble(withField(rest, path, to)), ofEnsemble(before), `${path}: ${String(to)}`)
  }
  const walked = new Set(POD_CHANGES.map((change) => /^\w+/.exec(change.path)?.[0] ?? ''))
  t.same([...walked].toSorted(), [...POD_FIELDS].toSorted())
})

await t.test('the pods of an Ensemble have its name, and each Model its own parts', async (t) => {
  const text = ofEnsemble({})
  const objects: { object: { metadata: { name: string } } }[] = JSON.parse(text)
  t.same([...new Set(objects.map(({ object }) => object.metadata.name))], ['faces-steps'])
  for (const part of ['fetch-crop', 'fetch-detect', 'model-crop', 'tutti.dev/ensemble']) {
    t.match(text, part)
  }
  const both = ofEnsemble({}, { hasBuiltins: true })
  t.match(both, '"--builtins"')
  t.match(both, '"requests":{"cpu":"300m","memory":"768Mi"}')
})

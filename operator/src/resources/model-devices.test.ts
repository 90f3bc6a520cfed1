import t from 'tap'
import { main, podSpec, type Spec } from '../testing/build-model.ts'

const limits = (fields: Spec) => main(fields)?.resources?.limits

await t.test('devices, and the nodes that have them', async (t) => {
  const fields: Spec = {
    resources: { limits: { memory: '8Gi' } },
    accelerator: {
      resourceName: 'nvidia.com/mig-1g.10gb',
      count: 2,
      runtimeClassName: 'nvidia',
      nodeSelector: { gpu: 'a100' },
      tolerations: [{ key: 'gpu', operator: 'Exists' }],
    },
  }
  t.same(limits(fields), { memory: '8Gi', 'nvidia.com/mig-1g.10gb': '2' })
  t.match(podSpec(fields), {
    runtimeClassName: 'nvidia',
    nodeSelector: { gpu: 'a100' },
    tolerations: [{ key: 'gpu', operator: 'Exists' }],
  })
  t.same(limits({ accelerator: {} }), { 'nvidia.com/gpu': '1' })
  t.same(limits({ instances: { count: 1, kind: 'KIND_GPU' } }), { 'nvidia.com/gpu': '1' })
  t.same(limits({ instances: { count: 2, kind: 'KIND_CPU' } }), undefined)
})

const told = (fields: Spec) => main(fields)?.args?.filter((arg) => arg.startsWith('--accelerator'))

await t.test('with claims of devices a pod asks for nothing else', async (t) => {
  const claims = [
    { name: 'gpu', resourceClaimTemplateName: 'one-gpu' },
    { name: 'nic', resourceClaimName: 'shared' },
  ]
  for (const kind of ['KIND_GPU', 'KIND_AUTO'] as const) {
    const fields: Spec = {
      accelerator: { claims },
      instances: { count: 1, kind },
      storageUri: 'http://models.example/a.tar',
    }
    t.same(limits(fields), undefined, kind)
    t.same(main(fields)?.resources?.claims, [{ name: 'gpu' }, { name: 'nic' }])
    const { resourceClaims, initContainers } = podSpec(fields)
    t.same(resourceClaims, claims)
    t.notOk(
      initContainers?.some(({ resources }) => resources?.claims !== undefined),
      'what fetches needs no device',
    )
    t.same(told(fields), ['--accelerator=nvidia.com/gpu=all'])
  }
})

await t.test('the image is that of the format and of the devices', async (t) => {
  const settings = { image: 'onnx', pythonImage: 'python' }
  const cuda = { ...settings, cudaImage: 'onnx-cuda', pythonCudaImage: 'python-cuda' }
  const imageOf = (name: 'onnx' | 'pytorch' | 'python', fields: Spec = {}, o = {}) =>
    main({ modelFormat: { name }, ...fields }, { settings: { ...settings, ...o } })?.image
  t.same(
    (['onnx', 'pytorch', 'python'] as const).map((name) => imageOf(name)),
    ['onnx', 'python', 'python'],
  )
  const shares: Spec = { accelerator: { resourceName: 'nvidia.com/gpu.shared' } }
  const claims: Spec = { accelerator: { claims: [{ name: 'a', resourceClaimName: 'a' }] } }
  const others: Spec = { accelerator: { resourceName: 'amd.com/gpu' } }
  for (const [name, cpu, gpu] of [
    ['onnx', 'onnx', 'onnx-cuda'],
    ['pytorch', 'python', 'python-cuda'],
    ['python', 'python', 'python-cuda'],
  ] as const) {
    t.equal(imageOf(name, shares), cpu, 'no image for devices is set')
    t.equal(imageOf(name, shares, cuda), gpu)
    t.equal(imageOf(name, { instances: { count: 1, kind: 'KIND_GPU' } }, cuda), gpu)
    t.equal(imageOf(name, claims, cuda), gpu)
    t.equal(imageOf(name, others, cuda), cpu)
    t.equal(imageOf(name, {}, cuda), cpu)
  }
})

await t.test('the process is told which devices its pod has', async (t) => {
  t.same(told({}), [])
  t.same(told({ instances: { count: 2, kind: 'KIND_CPU' } }), [])
  t.same(told({ accelerator: {} }), ['--accelerator=nvidia.com/gpu=1'])
  t.same(told({ instances: { count: 2, kind: 'KIND_GPU' } }), ['--accelerator=nvidia.com/gpu=1'])
  t.same(told({ accelerator: { resourceName: 'nvidia.com/mig-1g.5gb', count: 2 } }), [
    '--accelerator=nvidia.com/mig-1g.5gb=2',
  ])
})

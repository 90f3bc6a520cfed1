import type { PodSpec } from '@tutti/kube'
import * as fc from 'fast-check'
import t from 'tap'
import { overlayPodSpec } from './pod-overlay.ts'

const BASE: PodSpec = {
  automountServiceAccountToken: false,
  containers: [
    {
      name: 'main',
      args: ['--a'],
      env: [{ name: 'HOME', value: '/tmp' }],
      volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
      securityContext: { readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
    },
  ],
  volumes: [{ name: 'tmp', emptyDir: {} }],
  tolerations: [{ key: 'gpu', operator: 'Exists' }],
}

const main = (spec: PodSpec) => spec.containers[0]

await t.test('without an overlay the spec is as it was', async (t) => {
  t.equal(overlayPodSpec(BASE, undefined), BASE)
  t.same(overlayPodSpec(BASE, {}), BASE)
})

await t.test('main is merged by its name, further containers are added', async (t) => {
  const spec = overlayPodSpec(BASE, {
    containers: [
      { name: 'sidecar', image: 'x' },
      { name: 'main', env: [{ name: 'OMP_NUM_THREADS', value: '1' }], args: ['--b'] },
    ],
  })
  t.same(
    spec.containers.map(({ name }) => name),
    ['main', 'sidecar'],
  )
  t.same(main(spec)?.env, [
    { name: 'HOME', value: '/tmp' },
    { name: 'OMP_NUM_THREADS', value: '1' },
  ])
  t.same(main(spec)?.args, ['--b'])
  t.same(main(spec)?.volumeMounts, [{ name: 'tmp', mountPath: '/tmp' }])
})

await t.test('what stands for one choice of several is replaced as a whole', async (t) => {
  const valueFrom = { secretKeyRef: { name: 's', key: 'k' } }
  const spec = overlayPodSpec(BASE, {
    containers: [{ name: 'main', env: [{ name: 'HOME', valueFrom }] }],
    volumes: [{ name: 'tmp', persistentVolumeClaim: { claimName: 'scratch' } }],
  })
  t.same(main(spec)?.env, [{ name: 'HOME', valueFrom }])
  t.same(spec.volumes, [{ name: 'tmp', persistentVolumeClaim: { claimName: 'scratch' } }])
})

await t.test('objects are merged, tolerations joined', async (t) => {
  const spec = overlayPodSpec(BASE, {
    tolerations: [{ key: 'spot', operator: 'Exists' }],
    containers: [{ name: 'main', securityContext: { readOnlyRootFilesystem: false } }],
    priorityClassName: 'high',
  })
  t.same(
    spec.tolerations?.map(({ key }) => key),
    ['gpu', 'spot'],
  )
  t.same(main(spec)?.securityContext, {
    readOnlyRootFilesystem: false,
    capabilities: { drop: ['ALL'] },
  })
  t.match(spec, { priorityClassName: 'high' })
})

await t.test('$patch deletes and replaces, as in a strategic merge patch', async (t) => {
  const gone = { $patch: 'delete' }
  const only = { $patch: 'replace' }
  const overlay = (fields: object) => overlayPodSpec(BASE, { ...fields })
  const ofMain = (fields: object) => main(overlay({ containers: [{ name: 'main', ...fields }] }))
  t.notOk('securityContext' in (ofMain({ securityContext: gone }) ?? {}))
  t.same(ofMain({ securityContext: { ...only, runAsUser: 1 } })?.securityContext, { runAsUser: 1 })
  const capabilities = { readOnlyRootFilesystem: true, capabilities: {} }
  t.same(ofMain({ securityContext: { capabilities: only } })?.securityContext, capabilities)
  t.same(
    ofMain({
      env: [
        { name: 'HOME', ...gone },
        { name: 'A', value: 'b' },
      ],
    })?.env,
    [{ name: 'A', value: 'b' }],
  )
  t.same(ofMain({ env: [only, { name: 'A', value: 'b' }] })?.env, [{ name: 'A', value: 'b' }])
  t.same(overlay({ tolerations: [only, { key: 'spot' }] }).tolerations, [{ key: 'spot' }])
  t.same(overlay({ volumes: [only] }).volumes, [])
  t.same(overlay({ affinity: gone }), BASE, 'what was not there')
  t.same(overlay({ affinity: { ...only, a: 1 } }), { ...BASE, affinity: { a: 1 } })
})

await t.test(
  'any JSON is taken, nothing of the base is changed, and main stays first',
  async (t) => {
    const before = structuredClone(BASE)
    const overlay = fc.dictionary(
      fc.constantFrom('containers', 'volumes', 'tolerations', 'affinity', 'env', '__proto__', 'x'),
      fc.jsonValue({ maxDepth: 4 }),
    )
    fc.assert(
      fc.property(overlay, (fields) => {
        overlayPodSpec(BASE, fields)
        t.same(BASE, before)
      }),
    )
    t.equal(main(overlayPodSpec(BASE, { containers: [{ name: 'z' }] }))?.name, 'main')
  },
)

await t.test('a list as long as fits into a resource takes no time', async (t) => {
  const env = Array.from({ length: 60_000 }, (_, i) => ({ name: `E${i}` }))
  const at = performance.now()
  const { containers } = overlayPodSpec(BASE, { containers: [{ name: 'main', env }] })
  // One look at all elements for each of them took ten seconds and more, in which an operator loses its lease.
  t.ok(performance.now() - at < 5000)
  t.ok((containers[0]?.env?.length ?? 0) >= env.length)
})

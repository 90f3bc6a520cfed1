import t from 'tap'
import { podSpec } from '../testing/build-model.ts'

await t.test('where the namespace assigns a user, pods name none', async (t) => {
  const { securityContext } = podSpec({}, { settings: { hasAssignedUser: true } })
  t.same(securityContext, {
    runAsNonRoot: true,
    fsGroupChangePolicy: 'OnRootMismatch',
    seccompProfile: { type: 'RuntimeDefault' },
  })
})

await t.test(
  'containers that fetch get the proxies of the installation, others none',
  async (t) => {
    const proxies = { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: '.svc' }
    const { initContainers, containers } = podSpec(
      { storageUri: 'https://models.example/a.tar' },
      { settings: { proxies } },
    )
    t.match(initContainers, [
      {
        name: 'fetch',
        env: [
          { name: 'HOME' },
          { name: 'HTTPS_PROXY', value: 'http://proxy:3128' },
          { name: 'NO_PROXY', value: '.svc' },
        ],
      },
    ])
    t.same(containers?.[0]?.env, [{ name: 'HOME', value: '/tmp' }])
  },
)

await t.test('containers that fetch get the variables of the installation', async (t) => {
  const token = { secretKeyRef: { name: 'hub', key: 'token', optional: true } }
  const fetchEnv = [
    { name: 'HF_TOKEN', valueFrom: token },
    { name: 'HF_ENDPOINT', value: 'https://mirror.example' },
  ]
  const o = { settings: { fetchEnv } }
  const podTemplate = {
    spec: { initContainers: [{ name: 'fetch', env: [{ name: 'HF_ENDPOINT', value: 'own' }] }] },
  }
  const storageUri = 'hf://owner/name@v1/onnx'
  const own = podSpec({ storageUri, podTemplate }, o)
  t.same(own.initContainers?.[0]?.env, [
    { name: 'HOME', value: '/tmp' },
    fetchEnv[0],
    { name: 'HF_ENDPOINT', value: 'own' },
  ])
  t.same(own.containers?.[0]?.env, [{ name: 'HOME', value: '/tmp' }])
  const storage = { digest: `sha256:${'0'.repeat(64)}` }
  const mounted = podSpec({ storageUri: 'pvc://models/yolo', storage }, o)
  t.same(mounted.initContainers?.[0]?.env, [{ name: 'HOME', value: '/tmp' }], 'it asks no server')
})

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

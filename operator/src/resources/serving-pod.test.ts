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

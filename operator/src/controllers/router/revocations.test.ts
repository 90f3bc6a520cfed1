// needs: apiserver
import { startApiServer, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { installCrds } from '../../testing/prepare-server.ts'
import { revokeAccess } from '../../testing/revocations.ts'

await t.test(
  'access ends, whatever is wrong that it does not depend on',
  { skip: withoutKube() },
  async (t) => {
    const server = await startApiServer()
    t.teardown(() => server.stop())
    await installCrds(server)
    await revokeAccess(t, server, { rounds: 10, seed: 15 })
  },
)

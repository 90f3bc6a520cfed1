// needs: apiserver
import { testSeed } from '@tutti/chassis/testing'
import { startApiServer, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { installCrds } from '../../testing/prepare-server.ts'
import { revokeAccess } from '../../testing/revocations.ts'

t.setTimeout(0)

const SEED = testSeed()

await t.test(`access ends a thousand times, seed ${SEED}`, { skip: withoutKube() }, async (t) => {
  const server = await startApiServer()
  t.teardown(() => server.stop())
  await installCrds(server)
  await revokeAccess(t, server, { rounds: 1000, seed: SEED })
})

// needs: buckets
import t from 'tap'
import { azuriteCloud, fakeGcsCloud, withoutServer } from '../testing/cloud-buckets.ts'
import { testMirror } from '../testing/mirror-contract.ts'

const CLOUDS = [
  ['Google Cloud Storage', 'TUTTI_FAKE_GCS', fakeGcsCloud],
  ['Azure', 'TUTTI_AZURITE', azuriteCloud],
] as const

for (const [name, server, start] of CLOUDS) {
  await t.test(`repositories in ${name}`, { skip: withoutServer(server) }, async (t) => {
    const cloud = await start()
    t.teardown(() => cloud.close())
    await testMirror(t, cloud)
  })
}

// needs: buckets
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  azuriteCloud,
  type Cloud,
  fakeGcsCloud,
  testMirror,
  withoutServer,
} from '@tutti/repository/testing'
import t, { type Test } from 'tap'
import { cloudIdentity } from './index.ts'
import { scriptedIdentity } from './testing/scripted-identity.ts'

const TOKEN = 'token-of-a-pod'

const CLOUDS: readonly (readonly [
  string,
  'TUTTI_FAKE_GCS' | 'TUTTI_AZURITE',
  (t: Test) => Promise<Cloud>,
])[] = [
  ['Google Cloud Storage', 'TUTTI_FAKE_GCS', () => fakeGcsCloud()],
  ['Azure, by the key of the account', 'TUTTI_AZURITE', () => azuriteCloud()],
  ['Azure, by the identity of a pod', 'TUTTI_AZURITE', podOfAzure],
]

/** A pod on AKS, whose ServiceAccount has an identity of Azure. */
async function podOfAzure(t: Test): Promise<Cloud> {
  const tokenFile = join(t.testdir({}), 'token')
  await writeFile(tokenFile, 'of-the-cluster')
  const { identity } = scriptedIdentity(TOKEN)
  const cloud = await azuriteCloud({ token: TOKEN })
  return {
    ...cloud,
    identity,
    bucket: async () => {
      const bucket = await cloud.bucket()
      const env = {
        AZURE_TENANT_ID: '11111111-2222-3333-4444-555555555555',
        AZURE_CLIENT_ID: '66666666-7777-8888-9999-000000000000',
        AZURE_FEDERATED_TOKEN_FILE: tokenFile,
        AZURE_AUTHORITY_HOST: 'https://login.example/',
      }
      return Object.assign(bucket, { env: { ...bucket.env, ...env } })
    },
  }
}

for (const [name, server, start] of CLOUDS) {
  await t.test(`repositories in ${name}`, { skip: withoutServer(server) }, async (t) => {
    const cloud = await start(t)
    t.teardown(() => cloud.close())
    await testMirror(t, { identity: cloudIdentity, ...cloud })
  })
}

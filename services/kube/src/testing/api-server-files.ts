import { generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createTestCertificates } from '@tutti/chassis/testing'
import type { ApiUser } from './api-server.ts'

/** Lists the paths of an API server's files in its folder. */
export function filesIn(folder: string) {
  const file = (name: string): string => join(folder, name)
  return {
    ca: file('ca.pem'),
    cert: file('server.pem'),
    key: file('server.key'),
    serviceAccountKey: file('sa.key'),
    serviceAccountPublicKey: file('sa.pub'),
    tokens: file('tokens.csv'),
  }
}

/**
 * Writes the files that an API server starts with: certificates, the keys of service accounts, and the tokens of users.
 *
 * @param o.token - token of a user in system:masters.
 * @param o.users - further users.
 */
export async function writeServerFiles(
  folder: string,
  o: { readonly token: string; readonly users?: readonly ApiUser[] | undefined },
): Promise<void> {
  const files = filesIn(folder)
  await createTestCertificates(folder)
  const { privateKey, publicKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'sec1', format: 'pem' },
  })
  await writeFile(files.serviceAccountKey, privateKey)
  await writeFile(files.serviceAccountPublicKey, publicKey)
  const admin = { token: o.token, user: 'admin', groups: ['system:masters'] }
  const lines = [admin, ...(o.users ?? [])].map(({ token, user, groups = [] }) => {
    return `${token},${user},${user},"${groups.join(',')}"\n`
  })
  await writeFile(files.tokens, lines.join(''))
}

/** Builds the text of a kubeconfig file. */
export function kubeconfigText(o: {
  readonly url: URL
  readonly ca: string
  readonly token: string
}): string {
  // JSON is YAML.
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'test',
        cluster: {
          server: o.url.origin,
          'certificate-authority-data': Buffer.from(o.ca).toString('base64'),
        },
      },
    ],
    users: [{ name: 'test', user: { token: o.token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  })
}

import { readFile } from 'node:fs/promises'
import { createTestCertificates } from '@tutti/chassis/testing'
import { type ArtifactServer, startTlsArtifactServer } from '@tutti/repository/testing'
import type { Test } from 'tap'
import { tempFolder } from '../temp-repository.ts'
import { HOST_ADDRESS } from './kubectl.ts'

/**
 * Starts a server outside of the cluster that pods fetch from, with TLS of a private authority. It ends with the test.
 *
 * @returns with the `authority`, PEM.
 */
export async function startArtifactHost(
  t: Test,
): Promise<ArtifactServer & { readonly authority: string }> {
  const folder = await tempFolder(t)
  const { caFile, certFile, keyFile } = await createTestCertificates(folder, [`IP:${HOST_ADDRESS}`])
  const [cert, key] = [await readFile(certFile, 'utf8'), await readFile(keyFile, 'utf8')]
  const host = await startTlsArtifactServer({ key, cert, host: String(HOST_ADDRESS) })
  t.teardown(() => host.close())
  return { ...host, authority: await readFile(caFile, 'utf8') }
}

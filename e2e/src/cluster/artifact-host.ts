import { readFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import { createTestCertificates } from '@tutti/chassis/testing'
import type { Answer } from '@tutti/repository/testing'
import type { Test } from 'tap'
import { tempFolder } from '../temp-repository.ts'
import { HOST_ADDRESS } from './kubectl.ts'

/** A server outside of the cluster that pods fetch from, with TLS of a private authority. */
export interface ArtifactHost {
  readonly origin: string
  /** PEM. */
  readonly authority: string
  /** How many came since `script`. */
  readonly requests: number
  /** Answers from now on; each of the list once, the last for ever. */
  script(...answers: readonly Answer[]): void
}

/** Starts one that ends with the test. */
export async function startArtifactHost(t: Test): Promise<ArtifactHost> {
  const folder = await tempFolder(t)
  const { caFile, certFile, keyFile } = await createTestCertificates(folder, [`IP:${HOST_ADDRESS}`])
  let requests = 0
  let script: Answer[] = []
  const tls = { key: await readFile(keyFile), cert: await readFile(certFile) }
  const server = createServer(tls, (request, response) => {
    requests += 1
    const answer = script.length > 1 ? script.shift() : script[0]
    answer?.(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, HOST_ADDRESS, resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  return {
    origin: `https://${HOST_ADDRESS}:${address.port}`,
    authority: await readFile(caFile, 'utf8'),
    get requests() {
      return requests
    },
    script: (...next) => {
      requests = 0
      script = [...next]
    },
  }
}

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { createTestCertificates } from '@tutti/chassis/testing'
import type { PlainObject } from '@tutti/kube/testing'
import {
  type Answer,
  type ArtifactServer,
  answerStatus,
  S3_CREDENTIALS,
  serveBytes,
  startArtifactServer,
  startScriptedS3,
  startTlsArtifactServer,
  tarArchive,
} from '@tutti/repository/testing'
import type { Test } from 'tap'
import { TUTTI } from '../serving.ts'
import { tempFolder } from '../temp-repository.ts'

/** Where a Model's files are, and what it takes to read them. */
export interface ModelSource {
  /** What the Model says: `storageUri` and `storage`. */
  readonly spec: PlainObject
  /** What a Secret has to hold. */
  readonly secret?: { readonly name: string; readonly values: Readonly<Record<string, string>> }
}

const TOKEN = 'only-for-those-who-know-it'

/** The folder as an archive behind TLS of a private authority, for those who have the token. */
export async function openHttps(t: Test, folder: string): Promise<ModelSource> {
  const archive = await archiveOf(folder)
  const { caFile, certFile, keyFile } = await createTestCertificates(await tempFolder(t))
  const tls = { key: await readFile(keyFile, 'utf8'), cert: await readFile(certFile, 'utf8') }
  const answer: Answer = (request, response) => {
    const isKnown = request.headers.authorization === `Bearer ${TOKEN}`
    return (isKnown ? serveBytes(archive) : answerStatus(401))(request, response)
  }
  const server = await startTlsArtifactServer(tls, answer)
  t.teardown(() => server.close())
  const name = 'artifacts'
  return {
    spec: {
      storageUri: `${server.origin}/model.tar`,
      storage: { secretRef: { name }, digest: sha256(archive) },
    },
    secret: { name, values: { token: TOKEN, 'ca.crt': await readFile(caFile, 'utf8') } },
  }
}

/** The folder as objects of a bucket that takes signed requests only. */
export async function openS3(t: Test, folder: string): Promise<ModelSource> {
  const s3 = await startScriptedS3('bucket')
  t.teardown(() => s3.close())
  for (const [name, content] of await filesOf(folder)) s3.objects.set(`models/x/${name}`, content)
  const name = 'bucket'
  return {
    spec: {
      storageUri: 's3://bucket/models/x',
      storage: { secretRef: { name }, digest: await treeDigest(folder) },
    },
    secret: {
      name,
      values: {
        AWS_ACCESS_KEY_ID: S3_CREDENTIALS.accessKeyId,
        AWS_SECRET_ACCESS_KEY: S3_CREDENTIALS.secretAccessKey,
        AWS_SESSION_TOKEN: S3_CREDENTIALS.sessionToken,
        AWS_ENDPOINT_URL: s3.origin,
      },
    },
  }
}

/** A server that does not have the folder's archive until it is told that it is there. */
export async function openLate(
  t: Test,
  folder: string,
): Promise<ModelSource & { readonly server: ArtifactServer; readonly arrive: () => void }> {
  const archive = await archiveOf(folder)
  const server = await startArtifactServer(answerStatus(404))
  t.teardown(() => server.close())
  return {
    spec: { storageUri: `${server.origin}/model.tar` },
    server,
    arrive: () => server.script(serveBytes(archive)),
  }
}

/** As `tutti fetch` tells it. */
export async function treeDigest(folder: string): Promise<string> {
  const args = ['fetch', '--verify', folder, '--print-digest', '--log-info=false']
  const { stdout } = await promisify(execFile)(process.execPath, [TUTTI, ...args])
  return stdout.trim()
}

/** A tar archive of a folder's contents. */
export async function archiveOf(folder: string): Promise<Buffer> {
  return tarArchive((await filesOf(folder)).map(([name, data]) => ({ name, data })))
}

/** The files of a folder, by their paths in it. */
export async function filesOf(folder: string): Promise<readonly (readonly [string, Buffer])[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
  return await Promise.all(
    paths.map(async (path) => [relative(folder, path), await readFile(path)] as const),
  )
}

/** As `storage.digest` of an archive. */
export function sha256(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}

import { createHash } from 'node:crypto'
import { chmod, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PlainObject } from '@tutti/kube/testing'
import { serveBytes, tarArchive } from '@tutti/repository/testing'
import type { Test } from 'tap'
import { adderFrom } from './adders.ts'
import { startArtifactHost } from './artifact-host.ts'
import { publicFolder } from './claim.ts'
import { apply, createNamespace, kubectl } from './kubectl.ts'
import { openWorkloads } from './workloads.ts'

/** Namespace of the Models that use the cache: one that refuses folders of the node could not. */
const SPACE = 'cached'
const NAME = 'large'
/** Size of the model; TUTTI_CACHE_MIB=1024 asks for more than a run of all tests has time for. */
const MIB = Number(process.env['TUTTI_CACHE_MIB'] ?? 32)

/** A folder that pods write downloads to, and flags of the chart that name it. */
export async function openCacheFolder(t: Test): Promise<readonly string[]> {
  const folder = await publicFolder(t)
  await chmod(folder, 0o1777)
  return [`--set=step.cache.hostPath=${folder}`, `--set=step.cache.namespaces={${SPACE}}`]
}

/**
 * Two pods on one node, of a model from an https server: the second has its files from the cache, and the server is asked once.
 *
 * @param models - the folder `plus-one` in it is the model, beside which its archive has a large file.
 */
export async function showCache(t: Test, models: string): Promise<void> {
  const archive = await archiveOf(join(models, 'plus-one'))
  const host = await startArtifactHost(t)
  host.script(serveBytes(archive))
  await createNamespace(t, SPACE, 'privileged')
  const digest = `sha256:${createHash('sha256').update(archive).digest('hex')}`
  const { spec, ...model } = adderFrom(NAME, {
    storageUri: `${host.origin}/model.tar`,
    storage: { secretRef: { name: 'authority' }, digest },
    scaling: { minReplicas: 1, maxReplicas: 2 },
  })
  const metadata = { namespace: SPACE, name: 'authority' }
  const stringData = { 'ca.crt': host.authority }
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata, stringData }
  await apply(secret, { ...model, metadata: { namespace: SPACE, name: NAME }, spec })
  const pods = openWorkloads(SPACE)
  await pods.settled(`tutti.dev/model=${NAME}`, 1)
  t.equal(host.heard.length, 1)
  await pods.change('model', NAME, { scaling: { minReplicas: 2, maxReplicas: 2 } })
  await pods.settled(`tutti.dev/model=${NAME}`, 2)
  t.equal(host.heard.length, 1, 'the second pod downloads nothing')
  const seconds = (await pods.pods(`tutti.dev/model=${NAME}`)).map(secondsOfFetch)
  t.comment(`${MIB} MiB, seconds of the containers that fetch: ${seconds.join(', ')}`)
  await kubectl('delete', 'model', NAME, `--namespace=${SPACE}`)
}

async function archiveOf(folder: string): Promise<Buffer> {
  const names = ['config.pbtxt', '1/model.onnx']
  const files = await Promise.all(
    names.map(async (name) => ({ name, data: await readFile(join(folder, name)) })),
  )
  return tarArchive([
    ...files,
    { name: 'large.bin', data: Buffer.alloc(MIB * 1024 * 1024, 'tutti') },
  ])
}

function secondsOfFetch({ status }: PlainObject): number {
  const statuses: readonly PlainObject[] = status.initContainerStatuses
  const { startedAt, finishedAt } = statuses[0]?.['state']?.terminated ?? {}
  return (Date.parse(finishedAt) - Date.parse(startedAt)) / 1000
}

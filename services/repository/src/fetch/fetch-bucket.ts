import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { ServeError } from '@tutti/errors'
import { addText } from '../tree-files.ts'
import type { Bucket, StoredObject } from './bucket.ts'
import { downloadFile } from './download-file.ts'
import type { FetchContext, Fetched, FetchOptions } from './fetch-options.ts'
import { showUri } from './source-uri.ts'
import { invalidArtifact, TreePlan } from './tree-plan.ts'
import { onDisk } from './work-folder.ts'

/** An object below the prefix of a model. */
interface ModelObject extends StoredObject {
  /** Below the model's directory. */
  readonly path: string
  /** A key that ends in `/`: a folder that a person made, which may be a version of an ensemble. */
  readonly isFolder: boolean
}

/** Objects at the same time: enough to fill a line with small ones. */
const PARALLEL = 4

/**
 * Downloads all objects below a prefix into the work folder.
 *
 * @param source.open - opens the bucket with this attempt's context, whose signal ends all its downloads.
 * @returns undefined if the listing still equals that of `o.validator`.
 */
export async function fetchBucket(
  source: { readonly prefix: string; open(context: FetchContext): Bucket },
  o: FetchOptions,
): Promise<Fetched | undefined> {
  const stop = new AbortController()
  const signal = AbortSignal.any([o.context.signal, stop.signal])
  const attempt = { ...o, context: { ...o.context, signal } }
  const bucket = source.open(attempt.context)
  const objects = await listModel(bucket, source.prefix, attempt)
  const validator = digestListing(objects)
  if (o.validator === validator) return undefined
  // Only files of this state count: the attempt before may have found another.
  const root = o.work.path(validator)
  for (const path of o.done) if (!path.startsWith(root)) o.done.delete(path)
  o.context.transfer?.begin({
    bytes: sizeOf(objects.filter(({ path }) => o.done.has(join(root, path)))),
    totalBytes: sizeOf(objects),
  })
  const rest = objects.values()
  const downloadSome = async (): Promise<void> => {
    for (const object of rest) await download(bucket, object, join(root, object.path), attempt)
  }
  const downloads = Array.from({ length: PARALLEL }, () =>
    downloadSome().catch((error: unknown) => stop.abort(error)),
  )
  await Promise.all(downloads)
  signal.throwIfAborted()
  return { root, validator }
}

/** @throws ServeError ARTIFACT_NOT_FOUND if the prefix has no objects, ARTIFACT_INVALID for keys that are no paths of files. */
async function listModel(
  bucket: Bucket,
  prefix: string,
  { context, uri }: FetchOptions,
): Promise<readonly ModelObject[]> {
  const plan = new TreePlan(context.bounds)
  const found: ModelObject[] = []
  for await (const objects of bucket.list(prefix)) {
    for (const object of objects) {
      const { key, sizeBytes } = object
      if (!key.startsWith(prefix))
        throw invalidArtifact(key, 'it is none of the keys that were asked for')
      const name = key.slice(prefix.length)
      const isFolder = name === '' || name.endsWith('/')
      const path = plan.add(isFolder ? 'directory' : 'file', name, sizeBytes)
      if (path !== '') found.push({ ...object, path, isFolder })
    }
  }
  if (found.some(({ isFolder }) => !isFolder)) return found
  const text = `'${showUri(uri)}' has no objects, want a model's directory`
  throw new ServeError('ARTIFACT_NOT_FOUND', text)
}

/** Sums the sizes of objects, in bytes. */
function sizeOf(objects: readonly StoredObject[]): number {
  return objects.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
}

/** Tells this state of a listing from others. */
function digestListing(objects: readonly ModelObject[]): string {
  const hash = createHash('sha256')
  for (const { path, tag, sizeBytes } of objects)
    for (const part of [path, tag, String(sizeBytes)]) addText(hash, part)
  return hash.digest('hex')
}

async function download(
  bucket: Bucket,
  object: ModelObject,
  path: string,
  o: FetchOptions,
): Promise<void> {
  const { tag, sizeBytes, isFolder } = object
  if (o.done.has(path)) return
  await onDisk(path, () => mkdir(isFolder ? path : dirname(path), { recursive: true }))
  if (isFolder) return
  const { cache, signal, transfer } = o.context
  const get = () => downloadObject(bucket, object, path, o)
  // Without a tag nothing tells one state of an object from another.
  if (cache === undefined || tag === '') await get()
  else {
    const name = JSON.stringify([bucket.api.object(object).url.href, tag, sizeBytes])
    const isCached = await cache.share({ name }, { path, signal, download: get })
    if (isCached) transfer?.add(sizeBytes)
  }
  o.done.add(path)
}

async function downloadObject(
  bucket: Bucket,
  object: ModelObject,
  path: string,
  { context }: FetchOptions,
): Promise<void> {
  const { key, tag, sizeBytes } = object
  const changed = (): ServeError =>
    new ServeError('ARTIFACT_UNAVAILABLE', `object '${key}' changed during the fetch`)
  const answer = await bucket.object(object)
  const found = await downloadFile(answer, {
    context,
    client: bucket.client,
    path,
    refused: async (refusal) => {
      const failure = await bucket.refused(refusal)
      return refusal.status === 412 || refusal.status === 404 ? changed() : failure
    },
  })
  // A server may not know the condition of the request.
  const isOther = tag !== '' && bucket.api.tagOf(answer.headers) !== tag
  if (found?.sizeBytes !== sizeBytes || isOther) throw changed()
}

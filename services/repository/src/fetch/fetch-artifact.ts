import { type Clock, systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { FetchCredentials } from './credentials.ts'
import { fetchHttp, mismatch } from './fetch-http.ts'
import { FETCH_BOUNDS, type FetchBounds, type FetchContext } from './fetch-options.ts'
import { fetchS3 } from './fetch-s3.ts'
import { parseSourceUri, type SourceUri } from './source-uri.ts'
import { digestTree, type TreeDigest } from './tree-digest.ts'
import { type FetchRecord, WorkFolder } from './work-folder.ts'
import { WorkLock, type WorkLockOptions } from './work-lock.ts'

export interface FetchRequest
  extends Pick<FetchContext, 'random' | 'retrying'>,
    Pick<WorkLockOptions, 'waiting'> {
  readonly uri: string
  /** The model's directory, whole once it is there; what an earlier fetch put there is replaced. */
  readonly to: string
  /** `sha256:` and 64 hex digits: of the archive for http(s), of the tree for s3. */
  readonly digest?: string | undefined
  readonly credentials?: FetchCredentials
  readonly bounds?: Partial<FetchBounds>
  readonly signal: AbortSignal
  readonly clock?: Clock
}

export interface FetchResult extends Pick<FetchRecord, 'digest' | 'files' | 'bytes'> {
  /** False if it was there already. */
  readonly isFetched: boolean
}

/**
 * Fetches a model's directory from where it is stored. After a failure the next call goes on where this one ended.
 *
 * @throws ServeError FLAG_INVALID for an address or a digest that is none, and the ARTIFACT_ reasons.
 */
export async function fetchArtifact(o: FetchRequest): Promise<FetchResult> {
  const source = parseSourceUri(o.uri)
  const wanted = checkDigest(o.digest)
  const context: FetchContext = {
    bounds: { ...FETCH_BOUNDS, ...o.bounds },
    credentials: o.credentials ?? {},
    clock: o.clock ?? systemClock,
    signal: o.signal,
    ...(o.random !== undefined && { random: o.random }),
    ...(o.retrying !== undefined && { retrying: o.retrying }),
  }
  const work = new WorkFolder(o.to)
  const attempt = { source, wanted, uri: o.uri, work, context }
  // Without a lock: where nothing is to be done, nothing need be writable.
  const there = await findThere(attempt)
  if (isWanted(there, wanted)) return toResult(there, false)
  const lock = await WorkLock.take(work.lockPath, { ...context, ...toWaiting(o) })
  try {
    const signal = AbortSignal.any([o.signal, lock.lost])
    const kept = lock.hasWaited ? await findThere(attempt) : there
    return await fetchLocked({ ...attempt, context: { ...context, signal }, kept })
  } finally {
    await lock.release()
  }
}

/**
 * Checks that a folder has a digest.
 *
 * @param o.digest - of the tree; absent to only make it.
 * @throws ServeError ARTIFACT_NOT_FOUND if it is empty, ARTIFACT_MISMATCH, and what `digestTree` throws.
 */
export async function verifyArtifact(
  directory: string,
  o: { readonly digest?: string | undefined; readonly bounds?: Partial<FetchBounds> } = {},
): Promise<TreeDigest> {
  const wanted = checkDigest(o.digest)
  const found = await digestTree(directory, { ...FETCH_BOUNDS, ...o.bounds })
  if (wanted !== undefined && found.files === 0) {
    // A kubelet makes the folder that a volume's path names, so an empty one is a path that leads nowhere.
    throw new ServeError('ARTIFACT_NOT_FOUND', `'${directory}' is empty, want files with ${wanted}`)
  }
  if (wanted !== undefined && found.digest !== wanted) {
    throw mismatch(directory, found.digest, wanted)
  }
  return found
}

interface Attempt {
  readonly source: SourceUri
  readonly wanted: string | undefined
  readonly uri: string
  readonly work: WorkFolder
  readonly context: FetchContext
}

/** @param o.kept - what lies at the target, if it came from there. */
async function fetchLocked(
  o: Attempt & { readonly kept: FetchRecord | undefined },
): Promise<FetchResult> {
  const { source, wanted, uri, work, context, kept } = o
  if (isWanted(kept, wanted)) return toResult(kept, false)
  await work.open()
  const options = {
    context,
    work,
    uri,
    digest: wanted,
    kept: wanted === undefined ? kept : undefined,
  }
  const record =
    source.kind === 'http' ? await fetchHttp(source.url, options) : await fetchS3(source, options)
  if (record === kept) await work.abandon()
  return toResult(record, record !== kept)
}

function isWanted(
  there: FetchRecord | undefined,
  wanted: string | undefined,
): there is FetchRecord {
  return there !== undefined && there.digest === wanted
}

/** What lies at the target already: what came from the address and nobody touched since, or what has the wanted digest. */
async function findThere({
  source,
  wanted,
  uri,
  work,
  context,
}: Attempt): Promise<FetchRecord | undefined> {
  const record = await work.record()
  const isKnown = record?.uri === uri
  // Of s3 the digest is that of the tree: then it does not matter who put it there.
  const isTold = source.kind === 's3' && wanted !== undefined
  if (!isKnown && !isTold) return undefined
  try {
    const { digest, files, bytes } = await digestTree(work.target, context.bounds)
    if (isTold && digest === wanted) {
      return { uri, digest, tree: digest, files, bytes, validator: '' }
    }
    return isKnown && digest === record.tree ? record : undefined
  } catch {
    // Whatever it is, it is not what is wanted.
    return undefined
  }
}

function toWaiting({ waiting }: FetchRequest): Pick<WorkLockOptions, 'waiting'> {
  return waiting === undefined ? {} : { waiting }
}

function checkDigest(digest: string | undefined): string | undefined {
  if (digest === undefined || /^sha256:[0-9a-f]{64}$/.test(digest)) return digest
  throw new ServeError(
    'FLAG_INVALID',
    `--digest: "${digest}", want sha256: and 64 hex digits in lower case`,
    { details: { field: '--digest' } },
  )
}

function toResult({ digest, files, bytes }: FetchRecord, isFetched: boolean): FetchResult {
  return { digest, files, bytes, isFetched }
}

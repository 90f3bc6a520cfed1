import {
  type Clock,
  type Logger,
  type OpenTransfer,
  silentLogger,
  systemClock,
} from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { CloudUri } from '../repository-uri.ts'
import { following, persist } from './attempts.ts'
import { Bucket, type BucketApi } from './bucket.ts'
import type { FetchCredentials } from './credentials.ts'
import { DownloadCache } from './download-cache.ts'
import { fetchBucket } from './fetch-bucket.ts'
import { fetchHttp, requireDigest } from './fetch-http.ts'
import { fetchHub } from './fetch-hub.ts'
import { fetchOci } from './fetch-oci.ts'
import {
  FETCH_BOUNDS,
  type FetchBounds,
  type FetchContext,
  type Fetched,
  type FetchOptions,
} from './fetch-options.ts'
import { s3Api } from './s3-api.ts'
import { parseSourceUri, type SourceUri, showUri } from './source-uri.ts'
import { digestTree, type TreeDigest } from './tree-digest.ts'
import { type FetchRecord, WorkFolder } from './work-folder.ts'

export interface FetchRequest extends Pick<FetchContext, 'random' | 'identity'> {
  readonly uri: string
  /** Path of the model's directory. The directory appears whole, and replaces that of an earlier fetch. */
  readonly to: string
  /** Wanted digest, `sha256:` and 64 hex digits: that of the archive for http(s), else of the tree. */
  readonly digest?: string | undefined
  readonly credentials?: FetchCredentials
  /** Folder and largest size, in bytes, of a cache that other fetches share; undefined for none. */
  readonly cache?: { readonly directory: string; readonly maxBytes: number } | undefined
  /** Opens a bucket of Google or Azure with the credentials that are there now; absent in programs that open none. */
  readonly openBucket?: (
    at: CloudUri,
    context: Pick<FetchContext, 'bounds' | 'credentials' | 'signal'>,
  ) => Promise<BucketApi>
  readonly bounds?: Partial<FetchBounds>
  readonly signal: AbortSignal
  readonly clock?: Clock
  /** Logger of failed attempts, and of earlier fetches that did not end. */
  readonly log?: Pick<Logger, 'warn'>
  /** Opens the transfer that shows progress; called only if the server is asked. */
  readonly openTransfer?: OpenTransfer | undefined
}

export interface FetchedArtifact extends Pick<FetchRecord, 'digest' | 'files' | 'bytes'> {
  /** False if `to` had the model already. */
  readonly isFetched: boolean
}

/**
 * Fetches a model's directory from its address, unless `to` has it already.
 *
 * @throws ServeError FLAG_INVALID for an invalid address or digest; an ARTIFACT_ reason if the fetch fails.
 */
export async function fetchArtifact(o: FetchRequest): Promise<FetchedArtifact> {
  const { uri, to, digest } = o
  const source = parseSourceUri(uri)
  requireSha256(digest)
  const { clock = systemClock, log = silentLogger } = o
  const context: FetchContext = {
    credentials: {},
    ...o,
    clock,
    log,
    bounds: { ...FETCH_BOUNDS, ...o.bounds },
    cache: o.cache && new DownloadCache({ ...o.cache, clock, log }),
  }
  const work = new WorkFolder(to)
  const { openBucket } = o
  const attempt = { source, digest, uri, work, context, openBucket }
  // Before anything is written: a volume that has the model may be read-only.
  const there = await findThere(attempt)
  if (there !== undefined && there.digest === digest) return toResult(there, false)
  try {
    const hasLeftovers = await work.open()
    const fields = { directory: work.target }
    if (hasLeftovers) context.log.warn('an earlier fetch did not end, beginning anew', fields)
    return await fetchInto(attempt, o.openTransfer, digest === undefined ? there : undefined)
  } catch (error) {
    if (!(await work.isLost())) throw error
    const text = `another fetch into '${to}' began, want one at a time`
    throw new ServeError('ARTIFACT_NOT_STORED', text, { cause: error })
  } finally {
    await work.close()
  }
}

/**
 * Computes the digest of a folder's tree, and compares it with the wanted one.
 *
 * @param o.digest - the wanted digest; absent to compute it only.
 * @throws ServeError ARTIFACT_NOT_FOUND if it is empty, ARTIFACT_MISMATCH, and what `digestTree` throws.
 */
export async function verifyArtifact(
  directory: string,
  o: { readonly digest?: string | undefined; readonly bounds?: Partial<FetchBounds> } = {},
): Promise<TreeDigest> {
  requireSha256(o.digest)
  const found = await digestTree(directory, { ...FETCH_BOUNDS, ...o.bounds })
  if (o.digest !== undefined && found.files === 0) {
    // A kubelet makes the folder that a volume's path names, so an empty one is a path that leads nowhere.
    const text = `'${directory}' is empty, want files with ${o.digest}`
    throw new ServeError('ARTIFACT_NOT_FOUND', text)
  }
  requireDigest(directory, found.digest, o.digest)
  return found
}

type Attempt = Pick<FetchOptions, 'context' | 'work' | 'uri' | 'digest'> & {
  readonly source: SourceUri
  readonly openBucket: FetchRequest['openBucket']
}

/** @param kept - what the target holds, if the server is to be asked whether it is still the same. */
async function fetchInto(
  o: Attempt,
  openTransfer: OpenTransfer | undefined,
  kept: FetchRecord | undefined,
): Promise<FetchedArtifact> {
  const { source, digest: wanted, uri, work, context } = o
  const found = await following(openTransfer, showUri(uri), async (transfer, done) => {
    const followed = { ...context, transfer }
    const options = { ...o, context: followed, done, validator: kept?.validator ?? '' }
    return await persist(context, done, () => fetchSource(source, options, o.openBucket))
  })
  if (found === undefined && kept !== undefined) return toResult(kept, false)
  if (found === undefined) {
    const text = `'${showUri(uri)}' answered 304, which was not asked for`
    throw new ServeError('ARTIFACT_UNAVAILABLE', text)
  }
  const { digest: tree, files, bytes } = await digestTree(found.root, context.bounds)
  const { digest = tree, validator } = found
  requireDigest(uri, digest, wanted)
  context.signal.throwIfAborted()
  const record = { uri, digest, tree, files, bytes, validator }
  await work.publish(found.root, record)
  return toResult(record, true)
}

async function fetchSource(
  source: SourceUri,
  o: FetchOptions,
  openBucket: FetchRequest['openBucket'],
): Promise<Fetched | undefined> {
  if (source.kind === 'http') return await fetchHttp(source.url, o)
  if (source.kind === 'hf') return await fetchHub(source, o)
  if (source.kind === 'oci') return await fetchOci(source, o)
  if (source.kind === 's3') return await fetchBucket(toBucket(source, o.context), o)
  const { prefix } = source
  const api = await openBucket?.(source, o.context)
  if (api === undefined) throw new ServeError('INTERNAL', `bug: nothing opens ${source.kind}://`)
  return await fetchBucket({ prefix, open: (attempt) => new Bucket(api, attempt) }, o)
}

function toBucket(
  { bucket, prefix }: Extract<SourceUri, { readonly kind: 's3' }>,
  context: FetchContext,
): Parameters<typeof fetchBucket>[0] {
  const { credentials, clock, identity } = context
  const isKnown = identity === undefined || credentials.aws !== undefined
  const api = isKnown
    ? s3Api(bucket, context)
    : s3Api(bucket, {
        credentials: { ...(identity.region && { awsRegion: identity.region }), ...credentials },
        clock,
        keys: identity.keys(context),
      })
  return { prefix, open: (attempt) => new Bucket(api, attempt) }
}

/** Finds what the target holds: what came from the address and was not touched since, or what has the wanted digest. */
async function findThere(o: Attempt): Promise<FetchRecord | undefined> {
  const { source, digest: wanted, uri, work, context } = o
  const record = await work.record()
  const isKnown = record?.uri === uri
  // Only an archive has a digest of its own. With that of the tree it does not matter who put it there.
  const isComparable = source.kind !== 'http' && wanted !== undefined
  if (!isKnown && !isComparable) return undefined
  try {
    const { digest, files, bytes } = await digestTree(work.target, context.bounds)
    if (isComparable && digest === wanted) {
      return { uri, digest, tree: digest, files, bytes, validator: '' }
    }
    return isKnown && digest === record.tree ? record : undefined
  } catch {
    // A tree that cannot be read is fetched anew.
    return undefined
  }
}

function requireSha256(digest: string | undefined): void {
  if (digest === undefined || /^sha256:[0-9a-f]{64}$/.test(digest)) return
  const text = `--digest: "${digest}", want sha256: and 64 hex digits in lower case`
  throw new ServeError('FLAG_INVALID', text, { details: { field: '--digest' } })
}

function toResult({ digest, files, bytes }: FetchRecord, isFetched: boolean): FetchedArtifact {
  return { digest, files, bytes, isFetched }
}

import { ServeError } from '@tutti/errors'
import { hashFile } from '../content-hash.ts'
import { persist } from './attempts.ts'
import { type Downloaded, discardPart, downloadFile } from './download-file.ts'
import { extractArchive } from './extract-archive.ts'
import type { FetchContext } from './fetch-options.ts'
import { type HttpAnswer, HttpClient, type HttpHeaders } from './http-get.ts'
import { showUri } from './source-uri.ts'
import { digestTree } from './tree-digest.ts'
import type { FetchRecord, WorkFolder } from './work-folder.ts'

export interface FetchOptions {
  readonly context: FetchContext
  readonly work: WorkFolder
  /** As it was asked for; the record names it. */
  readonly uri: string
  /** `sha256:` and hex digits. */
  readonly digest?: string | undefined
  /** What lies at the target, whole, if it may be right still. */
  readonly kept: FetchRecord | undefined
}

const PART = 'archive'
const MAX_REDIRECTS = 5
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/**
 * Fetches a tar archive and publishes what is in it.
 *
 * @returns the record; `kept` itself if the server says that nothing changed.
 */
export async function fetchHttp(url: URL, o: FetchOptions): Promise<FetchRecord> {
  const client = new HttpClient(o.context)
  try {
    const archive = await download(url, client, o)
    return archive === undefined ? keptRecord(o) : await unpack(url, archive, o)
  } finally {
    client.close()
  }
}

function keptRecord({ kept, uri }: FetchOptions): FetchRecord {
  if (kept !== undefined) return kept
  throw new ServeError(
    'ARTIFACT_UNAVAILABLE',
    `'${showUri(uri)}' answered 304, which was not asked`,
  )
}

interface Archive extends Downloaded {
  readonly digest: string
}

/** @returns undefined if nothing changed. */
async function download(
  url: URL,
  client: HttpClient,
  o: FetchOptions,
): Promise<Archive | undefined> {
  const { context, work, uri, digest: wanted, kept } = o
  const isChecked = wanted !== undefined
  const condition =
    kept === undefined || kept.validator === '' ? {} : { 'if-none-match': kept.validator }
  const get = (headers: HttpHeaders): Promise<HttpAnswer> =>
    follow(client, url, o, 'range' in headers ? headers : { ...headers, ...condition })
  for (let round = 0; ; round++) {
    const found = await persist(context, (moved) =>
      downloadFile({ context, client, work, part: PART, uri, get, isChecked, moved }),
    )
    if (found === undefined) return undefined
    const digest = `sha256:${await hashFile(found.path)}`
    if (wanted === undefined || digest === wanted) return { ...found, digest }
    await discardPart({ work, part: PART })
    // What was gone on with may have been of another state; what came in one piece was not.
    if (round > 0 || !found.isResumed) throw mismatch(uri, digest, wanted)
  }
}

async function unpack(url: URL, archive: Archive, o: FetchOptions): Promise<FetchRecord> {
  const { context, work, uri } = o
  await work.clear('tree')
  try {
    const { root, files, bytes } = await extractArchive(archive.path, work.tree, context)
    const { digest: tree } = await digestTree(root, context.bounds)
    const { digest, etag: validator } = archive
    const record = { uri, digest, tree, files, bytes, validator }
    context.signal.throwIfAborted()
    await work.publish(root, record)
    return record
  } catch (error) {
    // Nothing is wrong with the archive: the next process need not download it again.
    if (context.signal.aborted) throw error
    // Another attempt would stumble over the same bytes.
    await discardPart({ work, part: PART })
    await work.clear('tree')
    throw ServeError.from(error).withPrefix(`'${showUri(url)}': `)
  }
}

export function mismatch(what: string, digest: string, wanted: string): ServeError {
  return new ServeError('ARTIFACT_MISMATCH', `'${showUri(what)}' has ${digest}, want ${wanted}`)
}

/** Follows redirects. Credentials are for the server that was named, and for no other. */
async function follow(
  client: HttpClient,
  start: URL,
  { context }: FetchOptions,
  headers: HttpHeaders,
): Promise<HttpAnswer> {
  const { authorization } = context.credentials
  let url = start
  for (let redirects = 0; ; redirects++) {
    const isNamed = url.origin === start.origin
    const own = isNamed && authorization !== undefined
    const answer = await client.get(url, {
      ...headers,
      ...(own && { authorization: authorization.reveal() }),
    })
    const { location } = answer.headers
    if (!REDIRECTS.has(answer.status) || location === undefined) return answer
    answer.body.destroy()
    url = toRedirect(url, location, redirects)
  }
}

function toRedirect(from: URL, location: string, redirects: number): URL {
  const refuse = (why: string): ServeError =>
    new ServeError('ARTIFACT_UNAVAILABLE', `'${showUri(from)}' leads ${why}`)
  if (redirects >= MAX_REDIRECTS) throw refuse(`further after ${MAX_REDIRECTS} redirects`)
  if (!URL.canParse(location, from.href)) throw refuse('to what is no address')
  const to = new URL(location, from.href)
  const isDowngrade = from.protocol === 'https:' && to.protocol !== 'https:'
  if (isDowngrade || !/^https?:$/.test(to.protocol)) {
    throw refuse(`to '${showUri(to)}', which is not https`)
  }
  to.username = ''
  to.password = ''
  return to
}

import { ServeError } from '@tutti/errors'
import { hashFile } from '../tree-files.ts'
import { downloadFile } from './download-file.ts'
import type { FetchContext, Fetched, FetchOptions } from './fetch-options.ts'
import { HttpClient, type HttpHeaders, type StreamedAnswer } from './http-get.ts'
import { showUri } from './source-uri.ts'

const MAX_REDIRECTS = 5
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/**
 * Downloads a tar archive, checks its digest and extracts it.
 *
 * @returns undefined if the server says that nothing changed.
 */
export async function fetchHttp(url: URL, o: FetchOptions): Promise<Fetched | undefined> {
  const { context, work, validator } = o
  const client = new HttpClient(context)
  const path = work.path('archive')
  const condition: HttpHeaders = validator === '' ? {} : { 'if-none-match': validator }
  const answer = await follow(client, url, context, condition)
  // Nothing is kept of any other answer.
  if (answer.status === 200) {
    const totalBytes = Number(answer.headers['content-length'] ?? 0) || undefined
    context.transfer?.begin({ bytes: 0, totalBytes })
  }
  const archive = await downloadFile(answer, { context, client, path })
  if (archive === undefined) return undefined
  const digest = `sha256:${await hashFile(path)}`
  requireDigest(o.uri, digest, o.digest)
  try {
    // Few processes fetch archives.
    const { extractArchive } = await import('./extract-archive.ts')
    const root = await extractArchive(path, work.path('tree'), context)
    return { root, digest, validator: archive.etag }
  } catch (error) {
    if (context.signal.aborted) throw error
    throw ServeError.from(error).withPrefix(`'${showUri(url)}': `)
  }
}

/** Compares a digest with the wanted one, if there is one. @throws ServeError ARTIFACT_MISMATCH if they differ. */
export function requireDigest(what: string, digest: string, wanted: string | undefined): void {
  if (wanted === undefined || digest === wanted) return
  throw new ServeError('ARTIFACT_MISMATCH', `'${showUri(what)}' has ${digest}, want ${wanted}`)
}

/** Follows redirects. Only the server that the address names gets the credentials. */
async function follow(
  client: HttpClient,
  start: URL,
  { credentials: { authorization } }: FetchContext,
  headers: HttpHeaders,
): Promise<StreamedAnswer> {
  let url = start
  for (let redirects = 0; ; redirects++) {
    const hasAccess = url.origin === start.origin && authorization !== undefined
    const own = hasAccess ? { authorization: authorization.reveal() } : {}
    const answer = await client.get(url, { ...headers, ...own })
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
  const to = URL.parse(location, from.href)
  if (to === null) throw refuse('to what is no address')
  const isDowngrade = from.protocol === 'https:' && to.protocol !== 'https:'
  if (isDowngrade || !/^https?:$/.test(to.protocol)) {
    throw refuse(`to '${showUri(to)}', which is not https`)
  }
  to.username = ''
  to.password = ''
  return to
}

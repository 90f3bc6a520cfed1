import { ServeError } from '@tutti/errors'
import { hashFile } from '../tree-files.ts'
import { type DownloadOptions, downloadFile, strongTagOf } from './download-file.ts'
import type { Fetched, FetchOptions } from './fetch-options.ts'
import { followRedirects } from './follow-redirects.ts'
import { HttpClient, type HttpHeaders, type StreamedAnswer } from './http-get.ts'
import { showUri } from './source-uri.ts'

/**
 * Downloads a tar archive, checks its digest and extracts it.
 *
 * @returns undefined if the server says that nothing changed.
 */
export async function fetchHttp(url: URL, o: FetchOptions): Promise<Fetched | undefined> {
  const { context, work, digest: wanted } = o
  const path = work.path('archive')
  let found: Archive | undefined = { digest: wanted ?? '', etag: '' }
  const download = async (): Promise<void> => {
    found = await downloadArchive(url, path, o)
  }
  const { cache, signal } = context
  if (cache === undefined || wanted === undefined) await download()
  else {
    const sha256 = wanted.slice('sha256:'.length)
    await cache.share({ sha256 }, { path, signal, download })
  }
  if (found === undefined) return undefined
  try {
    // Few processes fetch archives.
    const { extractArchive } = await import('./extract-archive.ts')
    const root = await extractArchive(path, work.path('tree'), context)
    return { root, digest: found.digest, validator: found.etag }
  } catch (error) {
    if (context.signal.aborted) throw error
    throw ServeError.from(error).withPrefix(`'${showUri(url)}': `)
  }
}

interface Archive {
  readonly digest: string
  readonly etag: string
}

/** @returns undefined if the server says that nothing changed. @throws ServeError ARTIFACT_MISMATCH, and what `downloadFile` throws. */
async function downloadArchive(
  url: URL,
  path: string,
  o: FetchOptions,
): Promise<Archive | undefined> {
  const { context, validator, uri, digest: wanted } = o
  const client = new HttpClient(context)
  const headers: HttpHeaders = validator === '' ? {} : { 'if-none-match': validator }
  const authorization = context.credentials.authorization?.reveal()
  const answer = await followRedirects(client, url, {
    headers,
    ...(authorization !== undefined && { authorization }),
  })
  const etag = answer.status === 200 ? strongTagOf(answer.headers) : ''
  const name = wanted === undefined && etag !== '' ? JSON.stringify([url.href, etag]) : undefined
  if (!(await receive(answer, { context, client, path, name }))) return undefined
  const digest = `sha256:${await hashFile(path)}`
  requireDigest(uri, digest, wanted)
  return { digest, etag }
}

/**
 * Reads an archive from its response, or from the cache.
 *
 * @param o.name - names the archive's state in the cache; undefined if nothing tells it from others.
 * @returns false if the server says that nothing changed.
 */
async function receive(
  answer: StreamedAnswer,
  o: DownloadOptions & { readonly name: string | undefined },
): Promise<boolean> {
  const { context, path, name } = o
  const { cache, transfer } = context
  // Nothing is kept of any other answer.
  if (answer.status === 200) {
    const totalBytes = Number(answer.headers['content-length'] ?? 0) || undefined
    transfer?.begin({ bytes: 0, totalBytes })
  }
  if (cache === undefined || name === undefined) {
    return (await downloadFile(answer, o)) !== undefined
  }
  if (await cache.take({ name }, path)) answer.body.destroy()
  else {
    await downloadFile(answer, o)
    await cache.keep({ name }, path)
  }
  return true
}

/** Compares a digest with the wanted one, if there is one. @throws ServeError ARTIFACT_MISMATCH if they differ. */
export function requireDigest(what: string, digest: string, wanted: string | undefined): void {
  if (wanted === undefined || digest === wanted) return
  throw new ServeError('ARTIFACT_MISMATCH', `'${showUri(what)}' has ${digest}, want ${wanted}`)
}

import { ServeError } from '@tutti/errors'
import { hashFile } from '../tree-files.ts'
import { downloadFile } from './download-file.ts'
import type { Fetched, FetchOptions } from './fetch-options.ts'
import { followRedirects } from './follow-redirects.ts'
import { HttpClient, type HttpHeaders } from './http-get.ts'
import { showUri } from './source-uri.ts'

/**
 * Downloads a tar archive, checks its digest and extracts it.
 *
 * @returns undefined if the server says that nothing changed.
 */
export async function fetchHttp(url: URL, o: FetchOptions): Promise<Fetched | undefined> {
  const { context, work, validator } = o
  const client = new HttpClient(context)
  const path = work.path('archive')
  const headers: HttpHeaders = validator === '' ? {} : { 'if-none-match': validator }
  const authorization = context.credentials.authorization?.reveal()
  const answer = await followRedirects(client, url, {
    headers,
    ...(authorization !== undefined && { authorization }),
  })
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

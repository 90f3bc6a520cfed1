import { type FileHandle, open } from 'node:fs/promises'
import { ServeError } from '@tutti/errors'
import { persist, TransientFailure } from './attempts.ts'
import type { FetchContext } from './fetch-options.ts'
import { type HttpAnswer, type HttpClient, type HttpHeaders, toStatusFailure } from './http-get.ts'
import { showUri } from './source-uri.ts'
import { onDisk } from './work-folder.ts'

export interface DownloadOptions {
  readonly context: FetchContext
  readonly client: HttpClient
  /** Of the file that is written; its folder exists. */
  readonly path: string
  /** Sends the request. @param headers - those that ask for the rest of a file. */
  get(headers: HttpHeaders): Promise<HttpAnswer>
  /** Converts a response that is neither 200, 206 nor 304. */
  refused?(answer: HttpAnswer): Promise<Error>
}

/** A file that has been downloaded. */
export interface Downloaded {
  readonly sizeBytes: number
  /** A strong entity tag, or ''. */
  readonly etag: string
}

/** What came so far. */
interface Part {
  readonly file: FileHandle
  sizeBytes: number
  etag: string
}

/**
 * Downloads a file. After a cut connection it asks for the rest, if the server named the state of the file (ETag); else it begins anew.
 *
 * @returns undefined if the server says that nothing changed (304).
 * @throws ServeError.
 */
export async function downloadFile(o: DownloadOptions): Promise<Downloaded | undefined> {
  const file = await onDisk(o.path, () => open(o.path, 'a'))
  const part = { file, sizeBytes: 0, etag: '' }
  try {
    const isWhole = await persist(o.context, (progress) => attempt(o, part, progress))
    return isWhole ? { sizeBytes: part.sizeBytes, etag: part.etag } : undefined
  } finally {
    await file.close()
  }
}

/** @returns false if nothing changed. */
async function attempt(o: DownloadOptions, part: Part, progress: () => void): Promise<boolean> {
  const { sizeBytes, etag } = part
  const asksForRest = sizeBytes > 0 && etag !== ''
  const answer = await o.get(asksForRest ? { range: `bytes=${sizeBytes}-`, 'if-range': etag } : {})
  const { status } = answer
  if (status === 304) {
    answer.body.destroy()
    return false
  }
  if (status === 206 || (status === 416 && asksForRest)) requireRest(answer, part)
  else if (status !== 200) throw (await o.refused?.(answer)) ?? toStatusFailure(answer)
  else await beginAnew(o, part, answer)
  await receive(o, part, answer, progress)
  return true
}

/** @throws TransientFailure if the response is not the rest of the part; the next attempt begins anew. */
function requireRest({ url, status, headers, body }: HttpAnswer, part: Part): void {
  const isNext = headers['content-range']?.startsWith(`bytes ${part.sizeBytes}-`) === true
  if (status === 206 && isNext && part.etag !== '' && headers.etag === part.etag) return
  body.destroy()
  part.etag = ''
  const text = `'${showUri(url)}' answered ${status} with another part than was asked for`
  throw new TransientFailure(new ServeError('ARTIFACT_UNAVAILABLE', text))
}

async function beginAnew(o: DownloadOptions, part: Part, { headers }: HttpAnswer): Promise<void> {
  // Weak tags say that two states mean the same, not that they have the same bytes.
  part.etag = headers.etag?.startsWith('"') === true ? headers.etag : ''
  part.sizeBytes = 0
  await onDisk(o.path, () => part.file.truncate())
}

async function receive(
  { context, client, path }: DownloadOptions,
  part: Part,
  { url, headers, body }: HttpAnswer,
  progress: () => void,
): Promise<void> {
  const { maxBytes } = context.bounds
  const requireRoom = (bytes: number): void => {
    if (part.sizeBytes + bytes <= maxBytes) return
    const text = `'${showUri(url)}' has more than ${maxBytes} bytes, want at most that`
    throw new ServeError('ARTIFACT_TOO_LARGE', text)
  }
  try {
    requireRoom(Number(headers['content-length'] ?? 0))
    for await (const piece of body as AsyncIterable<Buffer>) {
      requireRoom(piece.byteLength)
      await onDisk(path, () => part.file.appendFile(piece))
      part.sizeBytes += piece.byteLength
      progress()
    }
  } catch (error) {
    body.destroy()
    throw client.toFailure(url, error)
  }
}

import { open } from 'node:fs/promises'
import { ServeError } from '@tutti/errors'
import type { FetchOptions, Part } from './fetch-options.ts'
import { type HttpAnswer, type HttpClient, type HttpHeaders, toStatusFailure } from './http-get.ts'
import { showUri } from './source-uri.ts'
import { onDisk } from './work-folder.ts'

export interface DownloadOptions extends Pick<FetchOptions, 'context' | 'parts'> {
  readonly client: HttpClient
  /** Of the file that is written; its folder exists. */
  readonly path: string
  /** Sends the request. @param headers - those that ask for the rest of a file. */
  get(headers: HttpHeaders): Promise<HttpAnswer>
  /** Converts a response that is neither 200, 206 nor 304. */
  refused?(answer: HttpAnswer): Promise<Error>
}

/**
 * Downloads a file. After a cut connection the next call asks for the rest, if the server named the state of the file (ETag); else it
 * begins anew.
 *
 * @returns undefined if the server says that nothing changed (304).
 * @throws ServeError ARTIFACT_UNAVAILABLE if a further call may help.
 */
export async function downloadFile(o: DownloadOptions): Promise<Part | undefined> {
  const { parts, path } = o
  const part = parts.get(path)
  const answer = await o.get(
    part === undefined ? {} : { range: `bytes=${part.sizeBytes}-`, 'if-range': part.etag },
  )
  if (answer.status === 304) {
    answer.body.destroy()
    return undefined
  }
  // After another answer, 503 for example, the next attempt still goes on with the part.
  if ([200, 206, 416].includes(answer.status)) parts.delete(path)
  const next = toPart(answer, part)
  if (next === undefined) throw (await o.refused?.(answer)) ?? toStatusFailure(answer)
  return await receive(o, next, answer)
}

/** @returns what the body belongs to; undefined if it is neither the file nor its rest. */
function toPart({ status, headers }: HttpAnswer, part: Part | undefined): Part | undefined {
  // Weak tags say that two states mean the same, not that they have the same bytes.
  const etag = headers.etag?.startsWith('"') === true ? headers.etag : ''
  if (status === 200) return { sizeBytes: 0, etag }
  if (status !== 206 || part === undefined || etag !== part.etag) return undefined
  return headers['content-range']?.startsWith(`bytes ${part.sizeBytes}-`) === true
    ? part
    : undefined
}

async function receive(
  { context, client, path, parts }: DownloadOptions,
  part: Part,
  { url, headers, body }: HttpAnswer,
): Promise<Part> {
  const { maxBytes } = context.bounds
  const requireSpace = (bytes: number): void => {
    if (part.sizeBytes + bytes <= maxBytes) return
    const text = `'${showUri(url)}' has more than ${maxBytes} bytes, want at most that`
    throw new ServeError('ARTIFACT_TOO_LARGE', text)
  }
  const file = await onDisk(path, () => open(path, part.sizeBytes === 0 ? 'w' : 'a'))
  // Without a tag the rest could be that of another state.
  if (part.etag !== '') parts.set(path, part)
  try {
    requireSpace(Number(headers['content-length'] ?? 0))
    for await (const piece of body as AsyncIterable<Buffer>) {
      requireSpace(piece.byteLength)
      await onDisk(path, () => file.appendFile(piece))
      part.sizeBytes += piece.byteLength
    }
    return part
  } catch (error) {
    throw client.toFailure(url, error)
  } finally {
    body.destroy()
    await file.close()
  }
}

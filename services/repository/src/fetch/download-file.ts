import { open } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { ServeError } from '@tutti/errors'
import type { FetchContext } from './fetch-options.ts'
import { type HttpClient, type StreamedAnswer, toStatusFailure } from './http-get.ts'
import { showUri } from './source-uri.ts'
import { onDisk } from './work-folder.ts'

/** The options with which the body of a response becomes a file. */
export interface DownloadOptions {
  readonly context: FetchContext
  readonly client: HttpClient
  /** Path of the file that is written; its folder exists. */
  readonly path: string
  /** Bytes that the file has already, which the answer (206) continues; absent to write it from its beginning. */
  readonly from?: number
  /** Converts a response that is neither 200 nor 304. */
  refused?(answer: StreamedAnswer): Promise<Error>
}

/** A file that was downloaded. */
export interface Download {
  /** Bytes that came. */
  readonly sizeBytes: number
}

/**
 * Writes the body of a response to a file, from its beginning or behind what the file has.
 *
 * @returns undefined if the server says that nothing changed (304).
 * @throws ServeError ARTIFACT_UNAVAILABLE if a further attempt may help; ARTIFACT_TOO_LARGE, ARTIFACT_NOT_STORED.
 */
export async function downloadFile(
  answer: StreamedAnswer,
  o: DownloadOptions,
): Promise<Download | undefined> {
  const { status, body } = answer
  if (status === 304) {
    body.destroy()
    return undefined
  }
  if (status !== (o.from === undefined ? 200 : 206))
    throw (await o.refused?.(answer)) ?? toStatusFailure(answer)
  return { sizeBytes: await receive(answer, o) }
}

/** Reads the entity tag of a response. Weak ones say that two states mean the same, not that they have the same bytes. */
export function strongTagOf({ etag = '' }: IncomingHttpHeaders): string {
  return etag.startsWith('"') ? etag : ''
}

/** @returns the number of bytes. */
async function receive(
  answer: StreamedAnswer,
  { context, client, path, from }: DownloadOptions,
): Promise<number> {
  const { url, headers, body } = answer
  const { maxBytes } = context.bounds
  const requireSpace = (bytes: number): void => {
    if (bytes <= maxBytes) return
    const text = `'${showUri(url)}' has more than ${maxBytes} bytes, which is the limit`
    throw new ServeError('ARTIFACT_TOO_LARGE', text)
  }
  const file = await onDisk(path, () => open(path, from === undefined ? 'w' : 'a'))
  let sizeBytes = 0
  try {
    requireSpace(Number(headers['content-length'] ?? 0))
    for await (const piece of client.pieces(answer)) {
      requireSpace(sizeBytes + piece.byteLength)
      await onDisk(path, () => file.appendFile(piece))
      sizeBytes += piece.byteLength
      context.transfer?.add(piece.byteLength)
    }
    return sizeBytes
  } catch (error) {
    throw client.toFailure(url, error)
  } finally {
    body.destroy()
    await file.close()
  }
}

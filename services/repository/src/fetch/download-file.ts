import { type FileHandle, open, stat } from 'node:fs/promises'
import { ServeError } from '@tutti/errors'
import { TransientFailure } from './attempts.ts'
import type { FetchContext } from './fetch-options.ts'
import type { HttpAnswer, HttpClient, HttpHeaders } from './http-get.ts'
import { toStatusFailure } from './http-status.ts'
import { onDisk } from './on-disk.ts'
import { showUri } from './source-uri.ts'
import type { WorkFolder } from './work-folder.ts'

/** What a part on disk is a part of. */
interface PartNote {
  readonly uri: string
  /** A strong entity tag, or ''. */
  readonly etag: string
}

export interface DownloadOptions {
  readonly context: FetchContext
  readonly client: HttpClient
  readonly work: WorkFolder
  /** Name of the part in the work folder; its note stands beside it. */
  readonly part: string
  /** Names what is downloaded, in the note. */
  readonly uri: string
  /** Sends the request, with what is needed to go on where a part ended. */
  get(headers: HttpHeaders): Promise<HttpAnswer>
  /** Every byte will be checked, so a part may be gone on with even if the server names no state. */
  readonly isChecked: boolean
  /** Called with every piece. */
  moved(): void
  /** What an answer amounts to that is neither 200, 206 nor 416; S3 reads its body for this. */
  refused?(answer: HttpAnswer): Promise<Error>
}

export interface Downloaded {
  readonly path: string
  readonly sizeBytes: number
  readonly etag: string
  /** Its first bytes came with an earlier attempt. */
  readonly isResumed: boolean
}

/**
 * Brings a file into the work folder, going on with the part that an earlier attempt left there. One attempt.
 *
 * @returns undefined if the server says that nothing changed (304), where `get` asked so.
 * @throws TransientFailure, ServeError.
 */
export async function downloadFile(o: DownloadOptions): Promise<Downloaded | undefined> {
  const part = await findPart(o)
  const answer = await o.get(toRange(part))
  switch (answer.status) {
    case 200:
      return await receiveWhole(o, part.path, answer)
    case 206:
      return await receiveRest(o, answer, part)
    case 304:
      answer.body.destroy()
      return undefined
    case 416:
      return await endOrRestart(o, answer, part)
    default:
      throw o.refused === undefined ? toStatusFailure(answer) : await o.refused(answer)
  }
}

/** What an earlier attempt left that can be gone on with. */
async function findPart(o: DownloadOptions): Promise<Part> {
  const path = o.work.path(o.part)
  const note = await o.work.note(noteName(o), isPartNote)
  const isOurs = note?.uri === o.uri && (note.etag !== '' || o.isChecked)
  return isOurs ? { path, have: await sizeOf(path), etag: note.etag } : { path, have: 0, etag: '' }
}

async function receiveWhole(
  o: DownloadOptions,
  path: string,
  answer: HttpAnswer,
): Promise<Downloaded> {
  const etag = strongTag(answer)
  const length = answer.headers['content-length']
  const total = length === undefined ? undefined : Number(length)
  checkSize(o, answer, total)
  await begin(o, path, etag)
  const sizeBytes = await receive(o, answer, { path, from: 0, total })
  return { path, sizeBytes, etag, isResumed: false }
}

/** A part on disk, and the state of the file that it is of. */
interface Part {
  readonly path: string
  readonly have: number
  readonly etag: string
}

async function receiveRest(
  o: DownloadOptions,
  answer: HttpAnswer,
  { path, have, etag }: Part,
): Promise<Downloaded> {
  if (have === 0) {
    throw await restart(o, answer, 'the server sent a part where the whole was asked for')
  }
  const { from, total } = readRange(answer)
  if (from !== have || strongTag(answer) !== etag) {
    throw await restart(o, answer, 'the server sent another part than was asked for')
  }
  checkSize(o, answer, total)
  const sizeBytes = await receive(o, answer, { path, from, total })
  return { path, sizeBytes, etag, isResumed: true }
}

/** Deletes what was downloaded, so that the next attempt begins anew. */
export async function discardPart(o: Pick<DownloadOptions, 'work' | 'part'>): Promise<void> {
  await o.work.clear(noteName(o))
  await o.work.clear(o.part)
}

function noteName({ part }: Pick<DownloadOptions, 'part'>): string {
  return `${part}.json`
}

function toRange({ have, etag }: Part): HttpHeaders {
  if (have === 0) return {}
  return { range: `bytes=${have}-`, ...(etag !== '' && { 'if-range': etag }) }
}

async function begin(o: DownloadOptions, path: string, etag: string): Promise<void> {
  await onDisk(path, async () => (await open(path, 'w')).close())
  await o.work.writeNote(noteName(o), { uri: o.uri, etag } satisfies PartNote)
}

/** The server has nothing behind the part: either it was whole, or the file is another now. */
async function endOrRestart(
  o: DownloadOptions,
  answer: HttpAnswer,
  { path, have, etag }: Part,
): Promise<Downloaded> {
  if (have === 0) throw toStatusFailure(answer)
  const [, total] = /^bytes \*\/(\d+)$/.exec(answer.headers['content-range'] ?? '') ?? []
  if (Number(total) !== have) throw await restart(o, answer, 'the file has become shorter')
  answer.body.destroy()
  return { path, sizeBytes: have, etag, isResumed: true }
}

async function restart(
  o: DownloadOptions,
  { url, body }: HttpAnswer,
  why: string,
): Promise<TransientFailure> {
  body.destroy()
  await discardPart(o)
  const text = `'${showUri(url)}' cannot be gone on with: ${why}`
  return new TransientFailure(new ServeError('ARTIFACT_UNAVAILABLE', text))
}

async function receive(
  o: DownloadOptions,
  answer: HttpAnswer,
  part: { readonly path: string; readonly from: number; readonly total: number | undefined },
): Promise<number> {
  const { path } = part
  const file = await onDisk(path, () => open(path, 'r+'))
  try {
    const end = await copy(o, answer, { ...part, file })
    if (part.total !== undefined && end !== part.total) {
      const text = `'${showUri(answer.url)}' ended after ${end} bytes, want ${part.total}`
      throw new TransientFailure(new ServeError('ARTIFACT_UNAVAILABLE', text))
    }
    return end
  } finally {
    answer.body.destroy()
    // What came is kept, whatever ended it.
    await onDisk(path, () => file.sync())
    await file.close()
  }
}

/** @returns the position behind the last byte. */
async function copy(
  o: DownloadOptions,
  answer: HttpAnswer,
  { path, from, file }: { readonly path: string; readonly from: number; readonly file: FileHandle },
): Promise<number> {
  let at = from
  const pieces = answer.body[Symbol.asyncIterator]()
  for (;;) {
    const piece = await next(o, answer, pieces)
    if (piece === undefined) return at
    if (at + piece.byteLength > o.context.bounds.maxBytes) throw tooLarge(o, answer)
    await onDisk(path, () => writeAll(file, piece, at))
    at += piece.byteLength
    o.moved()
  }
}

/** Errors of the line are told from those of the disk by where they come from. */
async function next(
  o: DownloadOptions,
  { url }: HttpAnswer,
  pieces: AsyncIterator<unknown>,
): Promise<Uint8Array | undefined> {
  try {
    const { value, done } = await pieces.next()
    return done !== true && value instanceof Uint8Array ? value : undefined
  } catch (error) {
    throw o.client.toFailure(url, error)
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  let done = 0
  while (done < bytes.byteLength) {
    const { bytesWritten } = await file.write(bytes, done, bytes.byteLength - done, position + done)
    done += bytesWritten
  }
}

function readRange({ headers, url }: HttpAnswer): {
  readonly from: number
  readonly total: number | undefined
} {
  const text = headers['content-range'] ?? ''
  const [, from, , total] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(text) ?? []
  if (from === undefined) {
    throw new ServeError(
      'ARTIFACT_UNAVAILABLE',
      `'${showUri(url)}' answered 206 without a content-range that can be read`,
    )
  }
  return { from: Number(from), total: total === '*' ? undefined : Number(total) }
}

/** Weak tags say that two states mean the same, not that they have the same bytes. */
function strongTag({ headers }: HttpAnswer): string {
  const { etag = '' } = headers
  return etag.startsWith('"') ? etag : ''
}

function checkSize(o: DownloadOptions, answer: HttpAnswer, total: number | undefined): void {
  if ((total ?? 0) > o.context.bounds.maxBytes) throw tooLarge(o, answer)
}

function tooLarge(o: DownloadOptions, { url, body }: HttpAnswer): ServeError {
  body.destroy()
  return new ServeError(
    'ARTIFACT_TOO_LARGE',
    `'${showUri(url)}' has more than ${o.context.bounds.maxBytes} bytes, want at most that`,
  )
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch {
    // There is none: begin with the first byte.
    return 0
  }
}

function isPartNote(value: unknown): value is PartNote {
  const { uri, etag } = Object(value)
  return typeof uri === 'string' && typeof etag === 'string'
}

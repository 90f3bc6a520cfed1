import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ServeError } from '@tutti/errors'
import { downloadFile } from './download-file.ts'
import type { FetchOptions } from './fetch-options.ts'
import type { HttpClient, HttpHeaders, StreamedAnswer } from './http-get.ts'
import { onDisk } from './work-folder.ts'

/** A file with size and digest that are known before it is downloaded, so that a download may continue where another one was cut. */
export interface KnownFile {
  /** Path of the download; its folder need not exist. */
  readonly to: string
  readonly sizeBytes: number
  /** `sha256` of the bytes, or `git`: the SHA-1 that git gives a file. */
  readonly digest: { readonly kind: 'sha256' | 'git'; readonly hex: string }
  /** For messages. */
  readonly name: string
  get(client: HttpClient, headers: HttpHeaders): Promise<StreamedAnswer>
  readonly refused: (answer: StreamedAnswer) => Promise<Error>
}

/** Files at the same time: enough to fill a line with small ones. */
const PARALLEL = 4
/** An attempt that brought fewer bytes of a file that is not whole is no progress. */
const PROGRESS_BYTES = 2 ** 20

/**
 * Downloads files, and checks their digests. Files that are whole are kept for the next attempt, and so is what came of others.
 *
 * @throws ServeError ARTIFACT_MISMATCH for other bytes than the digest says; what `downloadFile` throws.
 */
export async function downloadKnownFiles(
  files: readonly KnownFile[],
  open: (context: FetchOptions['context']) => HttpClient,
  options: FetchOptions,
): Promise<void> {
  const stop = new AbortController()
  const signal = AbortSignal.any([options.context.signal, stop.signal])
  const attempt = { ...options, context: { ...options.context, signal } }
  const client = open(attempt.context)
  let bytes = 0
  for (const file of files) bytes += Math.min(await sizeOf(file.to), file.sizeBytes)
  const totalBytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  options.context.transfer?.begin({ bytes, totalBytes })
  const rest = files.values()
  const downloadSome = async (): Promise<void> => {
    for (const file of rest)
      if (!options.done.has(file.to)) await downloadOne(file, client, attempt)
  }
  const downloads = Array.from({ length: PARALLEL }, () =>
    downloadSome().catch((error: unknown) => stop.abort(error)),
  )
  await Promise.all(downloads)
  signal.throwIfAborted()
}

async function downloadOne(
  file: KnownFile,
  client: HttpClient,
  options: FetchOptions,
): Promise<void> {
  const { to: path, digest, sizeBytes } = file
  const { cache, signal, transfer } = options.context
  await onDisk(path, () => mkdir(dirname(path), { recursive: true }))
  const before = await sizeOf(path)
  const download = () => downloadRest(file, client, options)
  if (cache === undefined) await download()
  else {
    const { kind, hex } = digest
    const key = kind === 'sha256' ? { sha256: hex } : { name: `git ${hex}` }
    const isCached = await cache.share(key, { path, signal, download })
    // The cache believes what it has written of a name.
    if (isCached && (await digestOf(path, file)) !== hex) {
      await onDisk(path, () => rm(path))
      await download()
      await cache.keep(key, path)
    } else if (isCached) transfer?.add(sizeBytes - before)
  }
  options.done.add(path)
}

/** Downloads what a file lacks, and checks the whole. */
async function downloadRest(
  file: KnownFile,
  client: HttpClient,
  options: FetchOptions,
): Promise<void> {
  const { to: path, sizeBytes, name } = file
  const before = await sizeOf(path)
  try {
    if (before < sizeBytes || sizeBytes === 0) await continueFile(file, before, client, options)
  } finally {
    const kept = await sizeOf(path)
    if (kept >= before + PROGRESS_BYTES) options.done.add(`${path}:${kept}`)
  }
  const size = await sizeOf(path)
  if (size === sizeBytes && (await digestOf(path, file)) === file.digest.hex) return
  if (size < sizeBytes) {
    const text = `'${name}': ${size} bytes came, want ${sizeBytes}`
    throw new ServeError('ARTIFACT_UNAVAILABLE', text)
  }
  await onDisk(path, () => rm(path))
  // Two halves may be of different files, where a server takes no notice of the address.
  const reason = before === 0 ? 'ARTIFACT_MISMATCH' : 'ARTIFACT_UNAVAILABLE'
  throw new ServeError(reason, `'${name}' has other bytes than its digest ${file.digest.hex} says`)
}

/** Asks for the bytes that a file lacks. A server that knows no ranges sends all. */
async function continueFile(
  file: KnownFile,
  from: number,
  client: HttpClient,
  { context }: FetchOptions,
): Promise<void> {
  const { to: path, sizeBytes, refused } = file
  const answer = await file.get(client, from === 0 ? {} : { range: `bytes=${from}-` })
  const isRest = from > 0 && answer.status === 206
  if (isRest && answer.headers['content-range']?.startsWith(`bytes ${from}-`) !== true) {
    answer.body.destroy()
    throw new ServeError('ARTIFACT_UNAVAILABLE', `'${file.name}': other bytes came than asked for`)
  }
  const bounds = { ...context.bounds, maxBytes: isRest ? sizeBytes - from : sizeBytes }
  await downloadFile(answer, {
    context: { ...context, bounds },
    client,
    path,
    ...(isRest && { from }),
    refused,
  })
}

/** @returns 0 if there is no such file. */
async function sizeOf(path: string): Promise<number> {
  const found = await onDisk(path, () =>
    stat(path).catch((error: unknown) => {
      if (Object(error).code === 'ENOENT') return undefined
      throw error
    }),
  )
  return found?.size ?? 0
}

async function digestOf(path: string, { digest, sizeBytes }: KnownFile): Promise<string> {
  const hash: Hash =
    digest.kind === 'sha256'
      ? createHash('sha256')
      : createHash('sha1').update(`blob ${sizeBytes}\0`)
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}

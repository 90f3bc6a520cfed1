import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { link, mkdir, open, readdir, realpath, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Transform, type TransformCallback } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { ServeError } from '@tutti/errors'
import { Parser, type ReadEntry } from 'tar'
import { isInside } from '../version-files.ts'
import type { FetchContext } from './fetch-options.ts'
import { onDisk, syncDirectory } from './on-disk.ts'
import { invalid, TreePlan } from './tree-plan.ts'

const FILES: ReadonlySet<string> = new Set(['File', 'OldFile', 'ContiguousFile'])
/** Of which every tar archive consists (POSIX, pax). */
const BLOCK_BYTES = 512
const GZIP = [0x1f, 0x8b] as const
/** Longest header of an archive that names, links and attributes may take. */
const MAX_META_BYTES = 64 * 1024
/** Of an archive, per file, beside the contents. */
const OVERHEAD_BYTES = 8 * 1024

/** What was extracted. */
export interface Extracted {
  /** The model's own directory: the tree, or the one folder in it that wraps everything. */
  readonly root: string
  readonly files: number
  readonly bytes: number
}

/**
 * Extracts a tar archive, gzipped or not, into a folder that does not exist yet. Files and folders only, and links that stay within
 * the model; owners, times and special modes do not count.
 *
 * @param tree - made here.
 * @throws ServeError ARTIFACT_INVALID, ARTIFACT_TOO_LARGE, ARTIFACT_NOT_STORED; nothing outside of `tree` was touched.
 */
export async function extractArchive(
  archive: string,
  tree: string,
  o: Pick<FetchContext, 'bounds' | 'signal'>,
): Promise<Extracted> {
  await onDisk(tree, () => mkdir(tree, { recursive: true }))
  const writer = new TreeWriter(tree, new TreePlan(o.bounds))
  await readEntries(archive, (entry) => writer.take(entry), o)
  return writer.finish()
}

/** Writes the entries of an archive, one after the other. */
class TreeWriter {
  readonly #tree: string
  readonly #plan: TreePlan
  /** Made last: nothing is ever written through a link. */
  readonly #links: { readonly path: string; readonly target: string }[] = []
  readonly #directories = new Set<string>()

  constructor(tree: string, plan: TreePlan) {
    this.#tree = tree
    this.#plan = plan
  }

  async take(entry: ReadEntry): Promise<void> {
    const { type, path: name, size, linkpath = '' } = entry
    if (FILES.has(type)) return await this.#writeFile(entry, this.#plan.add('file', name, size))
    if (type === 'Directory' || type === 'GNUDumpDir') {
      await this.#makeDirectory(this.#plan.add('directory', name))
    } else if (type === 'Link') await this.#linkFile(name, linkpath)
    else if (type === 'SymbolicLink') {
      await this.#noteLink(name, linkpath)
    } else throw invalid(name, `it is of the kind ${type}, want files, folders and links`)
    entry.resume()
    return undefined
  }

  async finish(): Promise<Extracted> {
    const { files, bytes } = this.#plan
    if (files === 0) throw new ServeError('ARTIFACT_INVALID', 'the archive has no files')
    const root = await this.#findRoot()
    for (const { path, target } of this.#links) {
      await onDisk(path, () => symlink(target, join(this.#tree, path)))
    }
    for (const { path } of this.#links) await checkLink(root, join(this.#tree, path), path)
    for (const directory of this.#directories) await syncDirectory(join(this.#tree, directory))
    return { root, files, bytes }
  }

  async #writeFile(entry: ReadEntry, path: string): Promise<void> {
    const target = join(this.#tree, path)
    await this.#makeDirectory(dirname(path))
    // Whether somebody may execute it is all that counts of the mode.
    const mode = ((entry.mode ?? 0) & 0o100) === 0 ? 0o644 : 0o755
    const file = await onDisk(target, () => open(target, 'wx', mode))
    try {
      for await (const piece of piecesOf(entry)) await onDisk(target, () => file.writeFile(piece))
      await onDisk(target, () => file.sync())
    } finally {
      await file.close()
    }
  }

  async #makeDirectory(path: string): Promise<void> {
    if (this.#directories.has(path)) return
    await onDisk(path, () => mkdir(join(this.#tree, path), { recursive: true, mode: 0o755 }))
    for (let at = path; at !== '.' && at !== ''; at = dirname(at)) this.#directories.add(at)
    this.#directories.add('.')
  }

  /** A second name of a file that came before; it holds the same bytes. */
  async #linkFile(name: string, linkPath: string): Promise<void> {
    const target = linkPath.replace(/^(\.\/+)+/, '')
    if (this.#plan.kind(target) !== 'file') {
      throw invalid(name, 'it links to what is no file before it in the archive')
    }
    const path = this.#plan.add('file', name)
    await this.#makeDirectory(dirname(path))
    await onDisk(path, () => link(join(this.#tree, target), join(this.#tree, path)))
  }

  async #noteLink(name: string, target: string): Promise<void> {
    const path = this.#plan.add('link', name)
    if (target === '' || target.includes('\0')) throw invalid(name, 'it is a link to nothing')
    await this.#makeDirectory(dirname(path))
    this.#links.push({ path, target })
  }

  /** `tar czf yolo.tgz yolo` has everything in one folder; a folder that is called as a version is none of that. */
  async #findRoot(): Promise<string> {
    const entries = await readdir(this.#tree, { withFileTypes: true })
    const names = new Set([
      ...entries.map(({ name }) => name),
      ...this.#links.map(({ path }) => path.replace(/\/.*/, '')),
    ])
    const [only] = entries
    const isWrapped = names.size === 1 && only?.isDirectory() === true && !/^\d+$/.test(only.name)
    return isWrapped ? join(this.#tree, only.name) : this.#tree
  }
}

/** Links are looked through to the end: what one passes may be a link itself. */
async function checkLink(root: string, path: string, name: string): Promise<void> {
  let end: string
  try {
    end = await realpath(path)
  } catch {
    throw invalid(name, 'it is a link to nothing')
  }
  if (!isInside(await realpath(root), end)) throw invalid(name, 'it is a link that leads out')
}

/** Hands the entries over one by one. The next is not looked for before `take` is done with this one. */
async function readEntries(
  archive: string,
  take: (entry: ReadEntry) => Promise<void>,
  { bounds, signal }: Pick<FetchContext, 'bounds' | 'signal'>,
): Promise<void> {
  const stop = new AbortController()
  const either = AbortSignal.any([signal, stop.signal])
  let current: ReadEntry | undefined
  let taken: Promise<void> = Promise.resolve()
  const parser = new Parser({
    strict: true,
    // It would unpack that by itself, past every bound.
    zstd: false,
    maxMetaEntrySize: MAX_META_BYTES,
    onReadEntry: (entry) => {
      current = entry
      taken = taken.then(() => take(entry))
      taken.catch((error: unknown) => stop.abort(error))
    },
  })
  parser.on('error', (error: unknown) => stop.abort(broken(error)))
  parser.on('ignoredEntry', (entry: ReadEntry) => {
    stop.abort(invalid(entry.path, `it is of the kind ${entry.type}, which is not taken`))
  })
  try {
    const ended = once(parser, 'end', { signal: either })
    // Awaited only once everything was written.
    ended.catch(() => {})
    let size = 0
    for await (const piece of await openTar(archive, bounds, either)) {
      size += piece.byteLength
      if (!parser.write(piece)) await once(parser, 'drain', { signal: either })
    }
    // The parser takes a part of a header for the end.
    if (size % BLOCK_BYTES !== 0) throw new Error('it ends within a block')
    parser.end()
    await ended
    await taken
  } catch (error) {
    const cause = either.aborted ? either.reason : broken(error)
    // What is being written waits for bytes that do not come any more.
    current?.destroy()
    await taken.catch(() => {})
    throw cause
  }
}

/** The contents of an entry. @throws if it is destroyed, also before it is read: its own iterator waits for ever then. */
async function* piecesOf(entry: ReadEntry): AsyncGenerator<Buffer> {
  const pieces = entry[Symbol.asyncIterator]()
  for (;;) {
    if (entry.destroyed) throw new Error('the archive ended in this file')
    const { value, done } = await pieces.next()
    if (done === true) return
    yield value
  }
}

/** The bytes of the tar archive: what is gzipped is unpacked. @throws the signal's reason once it aborts. */
async function openTar(
  archive: string,
  bounds: FetchContext['bounds'],
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const [first, second] = await readMagic(archive)
  const source = createReadStream(archive, { signal })
  if (first !== GZIP[0] || second !== GZIP[1]) return source
  const limit = new ByteLimit(bounds.maxBytes + bounds.maxFiles * OVERHEAD_BYTES, bounds.maxBytes)
  return source
    .on('error', (error) => limit.destroy(error))
    .pipe(createGunzip())
    .on('error', (error) => limit.destroy(error))
    .pipe(limit)
}

async function readMagic(path: string): Promise<Uint8Array> {
  const file = await open(path, 'r')
  try {
    const bytes = new Uint8Array(2)
    await file.read(bytes, 0, 2, 0)
    return bytes
  } finally {
    await file.close()
  }
}

/** Ends a stream that unpacks to more than any archive within the bounds. */
class ByteLimit extends Transform {
  #left: number
  readonly #wanted: number

  constructor(maxBytes: number, wanted: number) {
    super()
    this.#left = maxBytes
    this.#wanted = wanted
  }

  override _transform(piece: Uint8Array, _encoding: string, done: TransformCallback): void {
    this.#left -= piece.byteLength
    if (this.#left >= 0) done(null, piece)
    else {
      const text = `the archive unpacks to more than ${this.#wanted} bytes, want at most that`
      done(new ServeError('ARTIFACT_TOO_LARGE', text))
    }
  }
}

function broken(error: unknown): unknown {
  if (error instanceof ServeError) return error
  const { message } = ServeError.from(error)
  const text = `it is no tar archive, gzipped or not, that can be read: ${message}`
  return new ServeError('ARTIFACT_INVALID', text, { cause: error })
}

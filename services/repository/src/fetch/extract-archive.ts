import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { link, mkdir, open, readdir, realpath, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { ServeError } from '@tutti/errors'
import { type ReadEntry, Unpack } from 'tar'
import { isInside } from '../version-files.ts'
import type { FetchContext } from './fetch-options.ts'
import { invalidArtifact, TreePlan } from './tree-plan.ts'
import { onDisk } from './work-folder.ts'

const FILES: readonly string[] = ['File', 'OldFile', 'ContiguousFile']
const LINKS: readonly string[] = ['Link', 'SymbolicLink']
/** A tar archive consists of blocks of this size (POSIX, pax). */
const BLOCK_BYTES = 512
/** Longest header of names, links and attributes. */
const MAX_META_BYTES = 64 * 1024
/** Bytes that each file of an archive may take beside its content. */
const OVERHEAD_BYTES = 8 * 1024
/** Errors of the disk; all other errors are the archive's. */
const DISK_ERRORS = /^(EACCES|EDQUOT|EFBIG|EIO|ENOSPC|EPERM|EROFS)$/

type Limits = Pick<FetchContext, 'bounds' | 'signal'>

/**
 * Extracts a tar archive, gzipped or not: files, folders, and links that stay within the model. Owners, times and special modes
 * do not count.
 *
 * @param tree - path of the folder that this makes.
 * @returns the model's own folder: the tree, or the one folder in it that wraps everything.
 * @throws ServeError ARTIFACT_INVALID, ARTIFACT_TOO_LARGE, ARTIFACT_NOT_STORED; nothing outside of `tree` was touched.
 */
export async function extractArchive(archive: string, tree: string, o: Limits): Promise<string> {
  const plan = new TreePlan(o.bounds)
  const root = await extractArchives([archive], tree, { ...o, plan })
  if (plan.files === 0) throw new ServeError('ARTIFACT_INVALID', 'the archive has no files')
  return root
}

/**
 * Extracts several archives into one folder, as `extractArchive` does. They may have no files.
 *
 * @param o.plan - knows the files that the folder has already.
 * @param o.isWanted - tells which entries are extracted; absent: all.
 * @param o.check - throws for the name of an entry that is refused, wanted or not.
 */
export async function extractArchives(
  archives: readonly string[],
  tree: string,
  o: Limits & {
    readonly plan: TreePlan
    readonly isWanted?: (name: string) => boolean
    readonly check?: (name: string) => void
  },
): Promise<string> {
  const { plan, isWanted = () => true, check = () => {} } = o
  await onDisk(tree, () => mkdir(tree, { recursive: true }))
  const links = new Map<string, Link>()
  const isAdmitted = (entry: ReadEntry): boolean => {
    check(entry.path)
    return isWanted(entry.path) && admit(entry, plan, links)
  }
  for (const archive of archives) await unpack(archive, tree, { ...o, isWanted, isAdmitted })
  // Made last: nothing is ever written through a link.
  for (const [name, made] of links) await makeLink(tree, name, made)
  const root = await findRoot(tree)
  for (const name of links.keys()) await checkLink(root, join(tree, name), name)
  return root
}

interface Link {
  readonly target: string
  /** A second name of a file that came before it, which is within the tree. */
  readonly isHard: boolean
}

async function makeLink(tree: string, name: string, { target, isHard }: Link): Promise<void> {
  const path = join(tree, name)
  await onDisk(path, async () => {
    await mkdir(dirname(path), { recursive: true })
    const made = isHard ? link(join(tree, target), path) : symlink(target, path)
    await made.catch((error: unknown) => {
      if (Object(error).code === 'EEXIST') throw invalidArtifact(name, 'it is there twice')
      throw error
    })
  })
}

/** @returns whether `tar` is to write the entry. @throws ServeError if it must not be in an archive. */
function admit(entry: ReadEntry, plan: TreePlan, links: Map<string, Link>): boolean {
  const { type, path: name, size, linkpath = '' } = entry
  // With one that lies under its own path, in upper or lower case, `tar` would wait for itself for ever.
  entry.linkpath = ''
  if (FILES.includes(type)) {
    plan.add('file', name, size)
    // Only one thing of the mode counts: whether the owner may execute.
    entry.mode = ((entry.mode ?? 0) & 0o100) === 0 ? 0o644 : 0o755
  } else if (type === 'Directory') {
    plan.add('directory', name)
    entry.mode = 0o755
  } else if (type === 'Link') {
    const target = linkpath.replace(/^(\.\/+)+/, '')
    if (!plan.has(target)) {
      throw invalidArtifact(name, 'it links to what is no file before it in the archive')
    }
    links.set(plan.add('file', name), { target, isHard: true })
    return false
  } else if (type === 'SymbolicLink') {
    if (linkpath.includes('\0')) throw invalidArtifact(name, 'it is a link to nothing')
    links.set(plan.add('file', name), { target: linkpath, isHard: false })
    return false
  } else throw invalidArtifact(name, `it is of the kind ${type}, want files, folders and links`)
  return true
}

/** Writes the wanted and admitted entries of an archive. */
async function unpack(
  archive: string,
  tree: string,
  {
    bounds,
    signal,
    isWanted,
    isAdmitted,
  }: Limits & {
    readonly isWanted: (name: string) => boolean
    readonly isAdmitted: (entry: ReadEntry) => boolean
  },
): Promise<void> {
  const stop = new AbortController()
  const either = AbortSignal.any([signal, stop.signal])
  const writer = new Unpack({
    cwd: tree,
    strict: true,
    preserveOwner: false,
    noMtime: true,
    dmode: 0o755,
    // It would unpack that by itself, past every bound.
    zstd: false,
    maxMetaEntrySize: MAX_META_BYTES,
    filter: (_, entry) => {
      try {
        return 'type' in entry && isAdmitted(entry)
      } catch (error) {
        stop.abort(error)
        return false
      }
    },
  })
  const { promise: written, resolve } = Promise.withResolvers<void>()
  writer.on('end', resolve)
  writer.on('error', (error: unknown) => {
    stop.abort(toFailure(error))
    // Without its folder it neither goes on nor ends.
    if (error instanceof Error && error.name === 'CwdError') resolve()
  })
  writer.on('ignoredEntry', ({ type, path }: ReadEntry) => {
    if (!LINKS.includes(type) && isWanted(path))
      stop.abort(invalidArtifact(path, `it is of the kind ${type}`))
  })
  try {
    for await (const piece of readTar(archive, bounds, either)) {
      if (!writer.write(piece)) await once(writer, 'drain', { signal: either })
    }
  } catch (error) {
    stop.abort(toFailure(error))
  }
  // Also after a failure: then it closes the file that it is writing.
  writer.end()
  await written
  if (either.aborted) throw either.reason
}

/** Reads the bytes of a tar archive, which may be gzipped. */
async function* readTar(
  path: string,
  { maxBytes, maxFiles }: FetchContext['bounds'],
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const isZipped = await isGzip(path)
  const file = createReadStream(path, { signal })
  const bytes = isZipped ? pipeline(file, createGunzip(), () => {}) : file
  let size = 0
  for await (const piece of bytes as AsyncIterable<Buffer>) {
    size += piece.byteLength
    if (size > maxBytes + maxFiles * OVERHEAD_BYTES) {
      const text = `the archive unpacks to more than ${maxBytes} bytes, which is the limit`
      throw new ServeError('ARTIFACT_TOO_LARGE', text)
    }
    yield piece
  }
  // The parser takes a part of a header for the end.
  if (size % BLOCK_BYTES !== 0) throw new Error('it ends within a block')
}

async function isGzip(path: string): Promise<boolean> {
  const file = await open(path)
  try {
    const { buffer } = await file.read(Buffer.alloc(2), 0, 2, 0)
    return buffer.readUInt16BE() === 0x1f8b
  } finally {
    await file.close()
  }
}

/**
 * Finds the model's folder. `tar czf yolo.tgz yolo` has everything in one folder; a folder with the name of a version is the
 * model's own.
 */
async function findRoot(tree: string): Promise<string> {
  const [only, ...others] = await readdir(tree, { withFileTypes: true })
  const isWrapped = only?.isDirectory() === true && others.length === 0
  return isWrapped && !/^\d+$/.test(only.name) ? join(tree, only.name) : tree
}

/** Follows a link to its end: what it passes may be a link too. */
async function checkLink(root: string, path: string, name: string): Promise<void> {
  const end = await realpath(path).catch(() => undefined)
  if (end === undefined) throw invalidArtifact(name, 'it is a link to nothing')
  if (!isInside(await realpath(root), end))
    throw invalidArtifact(name, 'it is a link that leads out')
}

function toFailure(error: unknown): ServeError {
  if (error instanceof ServeError) return error
  const { message } = ServeError.from(error)
  const isOfDisk = error instanceof Error && 'code' in error && DISK_ERRORS.test(String(error.code))
  const text = isOfDisk
    ? `the archive cannot be extracted: ${message}`
    : `it is no tar archive, gzipped or not, that can be read: ${message}`
  return new ServeError(isOfDisk ? 'ARTIFACT_NOT_STORED' : 'ARTIFACT_INVALID', text, {
    cause: error,
  })
}

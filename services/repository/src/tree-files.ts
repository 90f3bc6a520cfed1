import { createHash, type Hash } from 'node:crypto'
import { type BigIntStats, createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { ServeError } from '@tutti/errors'

/** A file of a model, with the numbers that show whether it changed. */
export interface TreeFile extends Pick<BigIntStats, 'size' | 'ino' | 'mtimeNs' | 'ctimeNs'> {
  /** Relative to the directory that was listed, with `/`. */
  readonly name: string
  readonly path: string
}

/** Links may form circles; no real model nests this deep. */
const MAX_DEPTH = 32
/** Files and folders. Thirty folders, each with two links to the next, have 2^30 paths. */
const MAX_ENTRIES = 100_000

/**
 * Lists the files below a directory, sorted by name. Symbolic links are followed. Dot files, `__pycache__` and the temporary
 * files of editors are left out.
 *
 * @param o.maxEntries - bound of files and folders; an entry counts once for each path that leads to it.
 * @param o.isLeftOut - tells which further names in the root are left out.
 * @param o.skipsUnreadable - whether entries that cannot be read are left out.
 * @throws ServeError REPOSITORY_UNREADABLE if the directory is nested too deep or has too many entries; the system's error if an
 * entry cannot be read.
 */
export async function listTree(
  root: string,
  o: {
    readonly maxEntries?: number
    readonly isLeftOut?: (name: string) => boolean
    readonly skipsUnreadable?: boolean
  } = {},
): Promise<readonly TreeFile[]> {
  const { maxEntries = MAX_ENTRIES, isLeftOut = () => false, skipsUnreadable = false } = o
  const files: TreeFile[] = []
  let entries = 0
  const unlessSkipped = async <T>(reading: Promise<T>): Promise<T | undefined> =>
    skipsUnreadable ? await reading.catch(() => undefined) : await reading
  const collect = async (directory: string, depth: number): Promise<void> => {
    if (depth > MAX_DEPTH) throw refuse(directory, `lies more than ${MAX_DEPTH} directories deep`)
    for (const entry of (await unlessSkipped(readdir(directory))) ?? []) {
      if (isIgnored(entry) || (depth === 0 && isLeftOut(entry))) continue
      entries += 1
      if (entries > maxEntries) {
        throw refuse(
          root,
          `has more than ${maxEntries} files and folders, those behind links counted`,
        )
      }
      const path = join(directory, entry)
      const found = await unlessSkipped(stat(path, { bigint: true }))
      if (found?.isDirectory()) await collect(path, depth + 1)
      else if (found?.isFile()) {
        const { size, ino, mtimeNs, ctimeNs } = found
        const name = relative(root, path).split(sep).join('/')
        files.push({ name, path, size, ino, mtimeNs, ctimeNs })
      }
    }
  }
  await collect(root, 0)
  return files.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

function refuse(directory: string, problem: string): ServeError {
  return new ServeError('REPOSITORY_UNREADABLE', `'${directory}' ${problem}`)
}

/** Endings of files that editors and Python leave behind for a while. */
const IGNORED_ENDINGS = ['~', '.swp', '.swo', '.swx', '.tmp', '.pyc', '.pyo'] as const

/**
 * True for names that do not belong to a model: dot files, and what serving or editing it writes. Python puts `__pycache__`
 * there when a model loads: counting it would make a revision change by serving.
 */
function isIgnored(name: string): boolean {
  if (name.startsWith('.') || name === '__pycache__') return true
  if (name.startsWith('#') && name.endsWith('#')) return true
  return IGNORED_ENDINGS.some((ending) => name.endsWith(ending))
}

/** Adds a text with its length before it, so that no two lists of texts give the same bytes. */
export function addText(hash: Hash, text: string): void {
  const bytes = Buffer.from(text, 'utf8')
  hash.update(`${bytes.byteLength}:`).update(bytes)
}

/** Computes the SHA-256 of a file's contents, in hex digits. The file is streamed, never held whole. */
export async function hashFile(path: string): Promise<string> {
  const content = createHash('sha256')
  for await (const chunk of createReadStream(path)) content.update(chunk)
  return content.digest('hex')
}

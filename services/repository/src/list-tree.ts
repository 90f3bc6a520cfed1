import type { BigIntStats } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { ServeError } from '@tutti/errors'
import { isIgnored } from './ignored-names.ts'

/** A file of a model, with what says whether it changed. */
export interface TreeFile extends Pick<BigIntStats, 'size' | 'ino' | 'mtimeNs' | 'ctimeNs'> {
  /** Relative to the directory that was listed, with `/`. */
  readonly name: string
  readonly path: string
}

/** Links may form circles; no real model nests this deep. */
const MAX_DEPTH = 32

/**
 * The files below a directory, sorted by name; what `isIgnored` names is left out, symbolic links are followed.
 *
 * @throws ServeError REPOSITORY_UNREADABLE if it is nested too deep; the system's error if something cannot be read.
 */
export async function listTree(root: string): Promise<readonly TreeFile[]> {
  return (await collect(root, root, 0)).toSorted(compareNames)
}

async function collect(root: string, directory: string, depth: number): Promise<TreeFile[]> {
  if (depth > MAX_DEPTH) {
    throw new ServeError(
      'REPOSITORY_UNREADABLE',
      `'${directory}' lies more than ${MAX_DEPTH} directories deep`,
    )
  }
  const files: TreeFile[] = []
  const names = (await readdir(directory)).filter((name) => !isIgnored(name))
  for (const entry of names) {
    const path = join(directory, entry)
    const found = await stat(path, { bigint: true })
    if (found.isDirectory()) files.push(...(await collect(root, path, depth + 1)))
    else if (found.isFile()) {
      const { size, ino, mtimeNs, ctimeNs } = found
      const name = relative(root, path).split(sep).join('/')
      files.push({ name, path, size, ino, mtimeNs, ctimeNs })
    }
  }
  return files
}

function compareNames(a: TreeFile, b: TreeFile): number {
  if (a.name === b.name) return 0
  return a.name < b.name ? -1 : 1
}

import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { collectBounded, readBounded } from '@tutti/command-line/client'
import { ServeError } from '@tutti/errors'

/** A file of manifests, or the text of standard input. */
export interface ManifestFile {
  /** Path as the user gave it, or below the folder that the user gave; `-` for standard input. */
  readonly name: string
  readonly text: string
}

/** Bytes of thousands of manifests. */
const MOST_BYTES = 64 * 2 ** 20
const EXTENSIONS = /\.(yaml|yml|json)$/

/**
 * Reads the manifests of `-f`: a file, `-` for standard input, or all .yaml, .yml and .json files of a folder, without its
 * subfolders, as kubectl does.
 *
 * @throws ServeError FLAG_INVALID for a file or folder that cannot be read, and for a folder without manifests.
 */
export async function readManifestFiles(
  names: readonly string[],
  input: AsyncIterable<Uint8Array | string> | undefined,
): Promise<readonly ManifestFile[]> {
  const files: ManifestFile[] = []
  for (const name of names) {
    if (name === '-') files.push({ name, text: await readInput(input) })
    else files.push(...(await readPath(name)))
  }
  return files
}

async function readPath(path: string): Promise<readonly ManifestFile[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [await readOne(path)]
    const names = (await readdir(path)).filter((name) => EXTENSIONS.test(name)).toSorted()
    if (names.length > 0) return await Promise.all(names.map((name) => readOne(join(path, name))))
  } catch (error) {
    if (error instanceof ServeError) throw error
    throw unreadable(path, error)
  }
  throw refused(path, 'the folder has no .yaml, .yml or .json file')
}

async function readOne(path: string): Promise<ManifestFile> {
  return { name: path, text: (await readBounded(path, MOST_BYTES)).toString('utf8') }
}

async function readInput(input: AsyncIterable<Uint8Array | string> | undefined): Promise<string> {
  if (input === undefined) return ''
  try {
    return (await collectBounded(input, MOST_BYTES)).toString('utf8')
  } catch (error) {
    throw unreadable('-', error)
  }
}

function unreadable(name: string, error: unknown): ServeError {
  return refused(name, `it cannot be read: ${ServeError.from(error).message}`, error)
}

function refused(name: string, problem: string, cause?: unknown): ServeError {
  return new ServeError('FLAG_INVALID', `--filename ${name}: ${problem}`, {
    details: { field: 'filename' },
    cause,
  })
}

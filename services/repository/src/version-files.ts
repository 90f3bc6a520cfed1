import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join, relative, resolve, sep } from 'node:path'
import { ServeError } from '@tutti/errors'
import type { RepositoryModel } from './repository-model.ts'

/** One file below a version directory. */
export interface VersionFile {
  /** Relative to the version directory, with `/`. */
  readonly name: string
  readonly path: string
  readonly sizeBytes: number
}

/** Links may form circles; no real model nests this deep. */
const MAX_DEPTH = 32

/** Python writes __pycache__ when a model loads: counting it would make the revision change by serving. */
function isIgnored(name: string): boolean {
  return name.startsWith('.') || name === '__pycache__'
}

/** Absolute path of a version directory. */
export function versionDirectory(model: RepositoryModel, version: number): string {
  return join(model.directory, String(version))
}

async function collect(root: string, directory: string, depth: number): Promise<VersionFile[]> {
  if (depth > MAX_DEPTH) {
    throw new ServeError(
      'REPOSITORY_UNREADABLE',
      `'${directory}' lies more than ${MAX_DEPTH} directories deep`,
    )
  }
  const files: VersionFile[] = []
  const names = (await readdir(directory)).filter((name) => !isIgnored(name))
  for (const entry of names.toSorted()) {
    const path = join(directory, entry)
    const found = await stat(path)
    if (found.isDirectory()) files.push(...(await collect(root, path, depth + 1)))
    else if (found.isFile()) {
      const name = relative(root, path).split(sep).join('/')
      files.push({ name, path, sizeBytes: found.size })
    }
  }
  return files
}

function compareNames(a: VersionFile, b: VersionFile): number {
  if (a.name === b.name) return 0
  return a.name < b.name ? -1 : 1
}

/**
 * The files of a model version, sorted by name. Dot files and `__pycache__` are left out, symbolic links are followed.
 *
 * @returns an empty list for an empty version directory.
 * @throws ServeError REPOSITORY_UNREADABLE if the directory cannot be read.
 */
export async function listVersionFiles(
  model: RepositoryModel,
  version: number,
): Promise<readonly VersionFile[]> {
  const directory = versionDirectory(model, version)
  try {
    return (await collect(directory, directory, 0)).toSorted(compareNames)
  } catch (error) {
    if (error instanceof ServeError) throw error
    throw new ServeError(
      'REPOSITORY_UNREADABLE',
      `version ${version} of model '${model.name}' cannot be read: ${ServeError.from(error).message}`,
      { cause: error, details: { model: model.name, version: String(version) } },
    )
  }
}

/** Adds a text with its length before it, so that no two lists of texts give the same bytes. */
function addText(hash: Hash, text: string): void {
  const bytes = Buffer.from(text, 'utf8')
  hash.update(`${bytes.byteLength}:`).update(bytes)
}

async function addFile(hash: Hash, file: VersionFile): Promise<void> {
  const content = createHash('sha256')
  for await (const chunk of createReadStream(file.path)) content.update(chunk)
  addText(hash, file.name)
  addText(hash, content.digest('hex'))
}

/**
 * The revision of a model version: SHA-256 over the configuration and, for every file, its relative name and contents.
 * Places, times and owners do not count, so copies of a version have the same revision.
 *
 * @param configText - the normalised configuration, in one canonical writing.
 * @returns 64 hex digits. Files are streamed, never held whole.
 * @throws ServeError REPOSITORY_UNREADABLE if a file cannot be read.
 */
export async function digestVersion(
  model: RepositoryModel,
  version: number,
  configText: string,
): Promise<string> {
  const hash = createHash('sha256')
  addText(hash, configText)
  for (const file of await listVersionFiles(model, version)) {
    try {
      await addFile(hash, file)
    } catch (error) {
      throw new ServeError('REPOSITORY_UNREADABLE', `'${file.path}' cannot be read`, {
        cause: error,
        details: { model: model.name, version: String(version) },
      })
    }
  }
  return hash.digest('hex')
}

/**
 * The path of a model file or directory within a version.
 *
 * @throws ServeError MODEL_LOAD_FAILED if `filename` leads out of the version directory or names nothing.
 */
export async function resolveModelFile(
  model: RepositoryModel,
  version: number,
  filename: string,
): Promise<string> {
  const directory = versionDirectory(model, version)
  const path = resolve(directory, filename)
  const details = { model: model.name, version: String(version), field: 'default_model_filename' }
  if (!isInside(directory, path)) {
    throw new ServeError(
      'MODEL_LOAD_FAILED',
      `unable to load model '${model.name}': file name '${filename}' is outside the version directory`,
      { code: 'INVALID_ARGUMENT', details },
    )
  }
  try {
    await stat(path)
  } catch (error) {
    throw new ServeError(
      'MODEL_LOAD_FAILED',
      `unable to load model '${model.name}': version ${version} has no file '${filename}'`,
      { cause: error, details },
    )
  }
  return path
}

/** True if `path` lies below `directory`; by name, links are not looked through. */
export function isInside(directory: string, path: string): boolean {
  const way = relative(directory, path)
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && resolve(way) !== way
}

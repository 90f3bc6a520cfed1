import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join, relative, resolve, sep } from 'node:path'
import { ServeError } from '@tutti/errors'
import type { RepositoryModel } from './repository-model.ts'
import { CONFIG_DIRECTORY, CONFIG_FILENAME, isVersion } from './scan.ts'
import { addText, hashFile, listTree, type TreeFile } from './tree-files.ts'

/** Gives the absolute path of a version directory. */
export function versionDirectory(model: RepositoryModel, version: number): string {
  return join(model.directory, String(version))
}

/**
 * Lists the files of a model version, sorted by name, as `listTree` does.
 *
 * @returns an empty list for an empty version directory.
 * @throws ServeError REPOSITORY_UNREADABLE if the directory cannot be read.
 */
export async function listVersionFiles(
  model: RepositoryModel,
  version: number,
): Promise<readonly TreeFile[]> {
  const directory = versionDirectory(model, version)
  try {
    return await listTree(directory)
  } catch (error) {
    if (error instanceof ServeError) throw error
    throw new ServeError(
      'REPOSITORY_UNREADABLE',
      `version ${version} of model '${model.name}' cannot be read: ${ServeError.from(error).message}`,
      { cause: error, details: { model: model.name, version: String(version) } },
    )
  }
}

/** Lists the names of files and folders in a version's directory: a model may be either. */
export async function listVersionNames(
  model: RepositoryModel,
  version: number,
): Promise<readonly string[]> {
  const files = await listVersionFiles(model, version)
  return [...new Set(files.map((file) => file.name.replace(/\/.*/, '')))]
}

/**
 * Computes the revision of a model version: SHA-256 over the configuration and over the relative names and contents of the
 * version's own files and of the files beside the versions. Paths, times and owners do not count, so copies of a version have the
 * same revision.
 *
 * @param configText - the normalised configuration; equal configurations have equal texts.
 * @returns 64 hex digits. Files are streamed, never held whole.
 * @throws ServeError REPOSITORY_UNREADABLE if a file of the version cannot be read.
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
      addText(hash, file.name)
      addText(hash, await hashFile(file.path))
    } catch (error) {
      throw new ServeError('REPOSITORY_UNREADABLE', `'${file.path}' cannot be read`, {
        cause: error,
        details: { model: model.name, version: String(version) },
      })
    }
  }
  for (const file of await listSharedFiles(model)) {
    addText(hash, `../${file.name}`)
    // A file that cannot be read here is not read by the model either.
    addText(hash, await hashFile(file.path).catch(() => ''))
  }
  return hash.digest('hex')
}

/** Lists the files that all versions of a model share, such as a vocabulary that its code reads. */
function listSharedFiles({ directory }: RepositoryModel): Promise<readonly TreeFile[]> {
  return listTree(directory, { isLeftOut: isNotShared, skipsUnreadable: true })
}

/** Versions, and configurations, which count by what they say. */
function isNotShared(name: string): boolean {
  return isVersion(name) || name === CONFIG_FILENAME || name === CONFIG_DIRECTORY
}

/**
 * Resolves the path of a model file or directory within a version.
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
    const text = `unable to load model '${model.name}': file name '${filename}' is outside the version directory`
    throw new ServeError('MODEL_LOAD_FAILED', text, { code: 'INVALID_ARGUMENT', details })
  }
  try {
    await stat(path)
  } catch (error) {
    const text = `unable to load model '${model.name}': version ${version} has no file '${filename}'`
    throw new ServeError('MODEL_LOAD_FAILED', text, { cause: error, details })
  }
  return path
}

/** Tells whether `path` lies below `directory`. It compares names and does not follow links. */
export function isInside(directory: string, path: string): boolean {
  const way = relative(directory, path)
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && resolve(way) !== way
}

import { readdir, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { ServeError } from '@tutti/errors'
import { readConfigText } from './bounded-read.ts'
import { type ConfigOverrides, overrideConfig } from './config-override.ts'
import type { RepositoryModel } from './repository-model.ts'
import { isRemote } from './repository-uri.ts'

/** A model's own directory, which holds config.pbtxt and versions. */
export interface ModelDirectory {
  /** Name under which the model is served. The directory may have another name. */
  readonly name: string
  readonly path: string
}

interface FoundDirectory extends ModelDirectory {
  /** Named by itself: an empty directory is a path that leads nowhere, since kubelets make what is not there. */
  readonly isOwn?: boolean
}

export interface ScanOptions {
  /** Models outside of the repositories, which are served beside the repositories' models. */
  readonly directories?: readonly ModelDirectory[]
  /** Overrides that are applied to the configurations as they are read. */
  readonly overrides?: ConfigOverrides
  /** `--model-config-name`: take configs/<configName>.pbtxt of a model if there is one, else its config.pbtxt. */
  readonly configName?: string
}

export const CONFIG_FILENAME = 'config.pbtxt'
/** Directory of a model that holds alternatives to its config.pbtxt. */
export const CONFIG_DIRECTORY = 'configs'
const MAX_CONFIG_BYTES = 16 * 1024 * 1024
const TWICE = 'model appears in two or more repositories'
/** Decimal without a leading zero, as Triton takes it. */
const VERSION = /^(0|[1-9]\d*)$/

/** Tells whether the name of a model's folder is a version: a decimal number without a leading zero. */
export function isVersion(name: string): boolean {
  return VERSION.test(name)
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}

function refuseRepository(path: string, problem: string, cause?: unknown): never {
  const text = `model repository '${path}' cannot be read: ${problem}`
  throw new ServeError('REPOSITORY_UNREADABLE', text, { cause })
}

/** @throws ServeError REPOSITORY_UNREADABLE for an address where only folders are read. */
function toDirectory(path: string): string {
  if (isRemote(path)) refuseRepository(path, 'only tutti serve and tutti-step read buckets')
  return resolve(path)
}

/** Follows symbolic links; false also for what does not exist, a dangling link for example. */
async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory()
  } catch {
    // A path that cannot be looked at fails when it is read.
    return false
  }
}

async function listDirectories(path: string): Promise<string[]> {
  const names = (await readdir(path)).filter((name) => !name.startsWith('.'))
  const flags = await Promise.all(names.map((name) => isDirectory(join(path, name))))
  return names.filter((_, i) => flags[i]).toSorted()
}

async function listModels(repository: string): Promise<string[]> {
  let isReadable: boolean
  try {
    isReadable = (await stat(repository)).isDirectory()
  } catch (error) {
    return refuseRepository(repository, `it does not exist (${codeOf(error)})`, error)
  }
  if (!isReadable) refuseRepository(repository, 'it is not a directory')
  try {
    return await listDirectories(repository)
  } catch (error) {
    return refuseRepository(repository, codeOf(error), error)
  }
}

async function findConfigPath(directory: string, configName: string | undefined): Promise<string> {
  const plain = join(directory, CONFIG_FILENAME)
  if (configName === undefined || configName === '') return plain
  const named = join(directory, CONFIG_DIRECTORY, `${configName}.pbtxt`)
  try {
    await stat(named)
    return named
  } catch (error) {
    // Absent means: this model has no such alternative. Anything else shows when the file is read.
    return codeOf(error) === 'ENOENT' ? plain : named
  }
}

async function readConfig(path: string, maxBytes: number): Promise<string | undefined> {
  try {
    return await readConfigText(path, maxBytes)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Lists the numeric version directories of a model, ascending. `warmup`, `configs`, names with a leading zero and the like are
 * no versions.
 */
async function listVersions(directory: string): Promise<number[]> {
  const names = (await listDirectories(directory)).filter(isVersion)
  const excess = names.find((name) => !Number.isSafeInteger(Number(name)))
  if (excess !== undefined) throw new Error(`version ${excess}, want at most 2^53 - 1`)
  return names.map(Number).toSorted((a, b) => a - b)
}

/** True for an empty volume too, which has `lost+found`. */
async function isEmpty(directory: string): Promise<boolean> {
  return (await readdir(directory)).every((name) => name === 'lost+found')
}

async function scanModel(
  { name, path: directory, isOwn = false }: FoundDirectory,
  options: ScanOptions,
): Promise<RepositoryModel> {
  const configPath = await findConfigPath(directory, options.configName)
  const found = { name, repository: dirname(directory), directory, configPath }
  try {
    const versions = await listVersions(directory)
    const written = { name, text: await readConfig(configPath, MAX_CONFIG_BYTES), path: configPath }
    if (isOwn && (await isEmpty(directory))) throw new Error(`'${directory}' is empty`)
    const configText = overrideConfig(written, options.overrides?.get(name))
    return { ...found, versions, ...(configText === undefined ? {} : { configText }) }
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    return { ...found, versions: [], error: `cannot read model '${name}': ${problem}` }
  }
}

/**
 * Lists the names of all models, sorted, each once.
 *
 * @throws ServeError REPOSITORY_UNREADABLE naming the repository that cannot be read.
 */
export async function listModelNames(
  paths: readonly string[],
  options: Pick<ScanOptions, 'directories'> = {},
): Promise<readonly string[]> {
  const names = await Promise.all(paths.map((path) => listModels(toDirectory(path))))
  const own = (options.directories ?? []).map(({ name }) => name)
  return [...new Set([...names.flat(), ...own])].toSorted()
}

/**
 * Looks for one model, as `scanRepositories` would list it.
 *
 * @param name - a directory's name, checked by the caller: it must not lead anywhere else.
 * @returns undefined if no repository has a directory of that name.
 * @throws ServeError REPOSITORY_UNREADABLE naming the repository that cannot be read.
 */
export async function findRepositoryModel(
  paths: readonly string[],
  name: string,
  options: ScanOptions = {},
): Promise<RepositoryModel | undefined> {
  const found: FoundDirectory[] = (options.directories ?? [])
    .filter((directory) => directory.name === name)
    .map(({ path }) => ({ name, path: resolve(path), isOwn: true }))
  for (const repository of new Set(paths.map(toDirectory))) {
    const path = join(repository, name)
    if (await isDirectory(path)) found.push({ name, path })
    // Absent and unreadable are two things: a mount that is away must not look like a model that was removed.
    else await listModels(repository)
  }
  const [first, ...more] = found
  if (first === undefined) return undefined
  const model = await scanModel(first, options)
  return more.length === 0 ? model : { ...model, error: TWICE }
}

/**
 * Lists the models of model repositories (triton-semantics 3.1). Directories that begin with a dot and plain files are
 * ignored. What is wrong with one model becomes its `error`; the others are not disturbed.
 *
 * @param paths - directories; the same one given twice counts once.
 * @returns the models, sorted by name; a model in two repositories comes once, with an `error`.
 * @throws ServeError REPOSITORY_UNREADABLE naming the repository that cannot be read.
 */
export async function scanRepositories(
  paths: readonly string[],
  options: ScanOptions = {},
): Promise<readonly RepositoryModel[]> {
  const names = await listModelNames(paths, options)
  const models = await Promise.all(names.map((name) => findRepositoryModel(paths, name, options)))
  return models.flatMap((model) => model ?? [])
}

import { createHash } from 'node:crypto'
import { dirname } from 'node:path'
import { ServeError } from '@tutti/errors'
import {
  isEnsembleConfig,
  type ModelConfig,
  parseModelConfig,
  plainName,
  splitName,
} from '@tutti/model-config'
import {
  checkOverrides,
  type LoadOverrides,
  OVERRIDE_PATH,
  toConfigText,
} from './load-overrides.ts'
import { ModelDigests } from './model-digests.ts'
import { Namespaces } from './namespaces.ts'
import { OverrideDirectories } from './override-directory.ts'
import type { RepositoryMirror } from './remote/repository-mirror.ts'
import type { RepositoryModel } from './repository-model.ts'
import { findRepositoryModel, listModelNames, type ScanOptions } from './scan.ts'
import { addText } from './tree-files.ts'
import { listVersionFiles } from './version-files.ts'

export interface ModelRepositoryOptions extends ScanOptions {
  /** The repositories' directories. */
  readonly paths: readonly string[]
  /** Mirrors of repositories in buckets. The ModelRepository closes them. */
  readonly mirrors?: readonly RepositoryMirror[]
  /** Directory for the files that load requests bring; the system's directory for temporary files if absent. */
  readonly temporaryDirectory?: string
  /** `--model-namespacing`: names are unique within a repository, and models are known by their qualified names. */
  readonly isNamespaced?: boolean
}

/** A model as it is now. The caller releases it once nothing uses it. */
export interface OpenedModel {
  readonly model: RepositoryModel
  /** Digest of files and configuration. Two openings have equal digests exactly if loading either gives the same model. */
  readonly digest: string
  /** Digest of the stored files, without the configuration of a load request; '' if the load request brought the files. */
  readonly filesDigest: string
  readonly release: () => Promise<void>
}

/**
 * The kind of a model. `unreadable`: an error hides the kind. `nothing`: no repository has the model, or the model names no
 * backend or platform and has no files.
 */
export type ModelKind = 'ensemble' | 'model' | 'unreadable' | 'nothing'

const LONGEST_NAME = 255

/** The models that may be loaded. Each call reads the repositories anew. */
export class ModelRepository {
  readonly #options: ModelRepositoryOptions
  readonly #digests = new ModelDigests()
  readonly #overrides: OverrideDirectories
  readonly #namespaces: Namespaces | undefined

  constructor(o: ModelRepositoryOptions) {
    this.#options = o
    this.#namespaces = o.isNamespaced === true ? new Namespaces(o) : undefined
    this.#overrides = new OverrideDirectories(o.temporaryDirectory)
  }

  /**
   * Lists the names of all models: sorted, or by repository if names are qualified.
   *
   * @param maxAgeMs - age up to which an earlier list of a bucket is used, in milliseconds.
   * @throws ServeError REPOSITORY_UNREADABLE
   */
  async names(maxAgeMs = 0): Promise<readonly string[]> {
    if (this.#namespaces !== undefined) return await this.#namespaces.names()
    return await listModelNames(await this.#paths((mirror) => mirror.list(maxAgeMs)), this.#options)
  }

  /** Tells whether the latest list of namespaced repositories has the model; false without namespaces. */
  hasListed(name: string): boolean {
    return this.#namespaces?.hasListed(name) ?? false
  }

  /**
   * Opens a model from its directory in a repository. If a load request brings files, writes them to a directory and opens that.
   *
   * @throws ServeError that says why there is nothing to load: MODEL_NOT_FOUND, REPOSITORY_UNREADABLE, CONFIG_SYNTAX,
   * INVALID_PARAMETER, MESSAGE_TOO_LARGE or UNSUPPORTED.
   */
  async take(name: string, overrides?: LoadOverrides): Promise<OpenedModel> {
    checkModelName(this.#plainName(name))
    if (overrides !== undefined) checkOverrides(overrides)
    const configText = overrides?.config === undefined ? undefined : toConfigText(overrides.config)
    if (overrides !== undefined && overrides.files.size > 0) {
      if (this.#namespaces !== undefined) throw filesRefused(name)
      return this.#write(name, configText ?? '', overrides.files)
    }
    const found = await this.#find(name)
    const stored = await this.#resolve(found)
    const filesDigest = withOverride(await this.#digest(found), stored.resolved)
    if (configText === undefined) {
      return { model: stored.model, digest: filesDigest, filesDigest, release: keep }
    }
    const overridden = { ...found, configText, configPath: OVERRIDE_PATH }
    const { model, resolved } = await this.#resolve(overridden)
    const digest = withOverride(withOverride(filesDigest, configText), resolved)
    return { model, digest, filesDigest, release: keep }
  }

  /**
   * Parses the configuration of a model as written: that of the load request, else the stored one.
   *
   * @returns undefined if there is no model or configuration, or if it does not parse; `take` throws the reason.
   */
  async readConfig(name: string, overrides?: LoadOverrides): Promise<ModelConfig | undefined> {
    try {
      if (overrides?.config !== undefined) {
        return parseModelConfig(toConfigText(overrides.config), OVERRIDE_PATH)
      }
      const { configText, configPath } = await this.#find(name)
      return configText === undefined ? undefined : parseModelConfig(configText, configPath)
    } catch {
      return undefined
    }
  }

  /** Tells the kind of a model by its configuration, as written. Never rejects. */
  async kindOf(name: string, overrides?: LoadOverrides): Promise<ModelKind> {
    try {
      if (overrides?.config !== undefined) {
        const given = parseModelConfig(toConfigText(overrides.config), OVERRIDE_PATH)
        return isEnsembleConfig(given) ? 'ensemble' : 'model'
      }
      return await storedKind(await this.#find(name))
    } catch (error) {
      return ServeError.from(error).reason === 'MODEL_NOT_FOUND' ? 'nothing' : 'unreadable'
    }
  }

  /**
   * Aborts all present and future requests to buckets, so that nothing waits for a bucket that does not answer.
   *
   * @param asking - work that may be asking a bucket now; this resolves when the work has ended.
   */
  async abandon(asking?: Promise<unknown>): Promise<void> {
    for (const mirror of this.#options.mirrors ?? []) mirror.abandon()
    await asking
  }

  /** Runs work, and calls `abandon` if the signal aborts before the work has ended. */
  async untilStopped<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    const abandon = (): void => void this.abandon()
    if (signal?.aborted === true) abandon()
    signal?.addEventListener('abort', abandon, { once: true })
    try {
      return await work()
    } finally {
      signal?.removeEventListener('abort', abandon)
    }
  }

  /** Deletes the files that load requests brought, and closes the mirrors. */
  async close(): Promise<void> {
    await this.#overrides.close()
    await Promise.all((this.#options.mirrors ?? []).map((mirror) => mirror.close()))
  }

  /** Checks a plain name. A name with a slash is wrong where it cannot be a qualified one. */
  #plainName(name: string): string {
    return this.#namespaces === undefined ? name : plainName(name)
  }

  /** Resolves the models that an ensemble's steps name, where repositories are namespaces. */
  async #resolve(model: RepositoryModel): ReturnType<Namespaces['resolveSteps']> {
    return (await this.#namespaces?.resolveSteps(model)) ?? { model }
  }

  /** Lists all directories, once the mirrors have what is wanted. */
  async #paths(look: (mirror: RepositoryMirror) => Promise<string>): Promise<readonly string[]> {
    const { paths, mirrors = [] } = this.#options
    return [...paths, ...(await Promise.all(mirrors.map(look)))]
  }

  async #find(name: string): Promise<RepositoryModel> {
    const plain = this.#plainName(name)
    checkModelName(plain)
    const paths =
      this.#namespaces === undefined
        ? await this.#paths((mirror) => mirror.refresh(name))
        : await this.#namespaces.pathsOf(splitName(name))
    const found = await findRepositoryModel(paths, plain, this.#options)
    if (found === undefined) {
      throw new ServeError('MODEL_NOT_FOUND', `no model repository has a directory '${name}'`, {
        details: { model: name },
      })
    }
    if (found.error !== undefined) throw new ServeError('REPOSITORY_UNREADABLE', found.error)
    return { ...found, name }
  }

  async #digest(model: RepositoryModel): Promise<string> {
    try {
      return await this.#digests.digest(model)
    } catch (error) {
      const { message } = ServeError.from(error)
      throw new ServeError(
        'REPOSITORY_UNREADABLE',
        `model '${model.name}' cannot be read: ${message}`,
        { cause: error, details: { model: model.name } },
      )
    }
  }

  async #write(
    name: string,
    configText: string,
    files: ReadonlyMap<string, Uint8Array>,
  ): Promise<OpenedModel> {
    const directory = await this.#overrides.write(name, files)
    try {
      const model = await findRepositoryModel([dirname(directory.path)], name)
      if (model === undefined) throw new ServeError('INTERNAL', 'bug: the model was not written')
      const written = { ...model, configText, configPath: OVERRIDE_PATH }
      return {
        model: written,
        digest: withOverride(digestFiles(files), configText),
        filesDigest: '',
        release: () => directory.remove(),
      }
    } catch (error) {
      await directory.remove()
      throw error
    }
  }
}

/** Checks a model's name. @throws ServeError INVALID_PARAMETER with Triton's text for a name that could not be a directory's. */
export function checkModelName(name: string): void {
  if (name === '') {
    const text = 'Model name cannot be empty. Please enter a valid name to deploy.'
    throw new ServeError('INVALID_PARAMETER', text)
  }
  const isTooLong = Buffer.byteLength(name) > LONGEST_NAME
  const shown = isTooLong ? `${name.slice(0, 100)}...` : name
  if (name.trim() === '..' || name.trim() === '.' || /[/\\\0]/.test(name)) {
    const text = `invalid model name '${shown}', model name must not contain path traversal characters`
    throw new ServeError('INVALID_PARAMETER', text)
  }
  if (isTooLong || name.startsWith('.')) {
    const want = isTooLong ? `want at most ${LONGEST_NAME} bytes` : 'it must not begin with a dot'
    throw new ServeError('INVALID_PARAMETER', `invalid model name '${shown}': ${want}`)
  }
}

async function storedKind(model: RepositoryModel): Promise<ModelKind> {
  const { configText, configPath } = model
  const config = configText === undefined ? undefined : parseModelConfig(configText, configPath)
  if (config !== undefined && isEnsembleConfig(config)) return 'ensemble'
  const isNamed = config !== undefined && (config.backend !== '' || config.platform !== '')
  return isNamed || (await hasFiles(model)) ? 'model' : 'nothing'
}

async function hasFiles(model: RepositoryModel): Promise<boolean> {
  for (const version of model.versions) {
    if ((await listVersionFiles(model, version)).length > 0) return true
  }
  return false
}

/** Keeps what is stored. */
async function keep(): Promise<void> {}

function filesRefused(name: string): ServeError {
  const text = `model '${plainName(name)}' cannot be loaded with files: with --model-namespacing a model belongs to a repository`
  return new ServeError('UNSUPPORTED', text, { details: { model: name } })
}

function withOverride(digest: string, configText: string | undefined): string {
  if (configText === undefined) return digest
  const hash = createHash('sha256')
  addText(hash, digest)
  addText(hash, configText)
  return hash.digest('hex')
}

/** Computes the digest of files given in a request. The directory's own digest would differ for equal files of two requests. */
function digestFiles(files: ReadonlyMap<string, Uint8Array>): string {
  const hash = createHash('sha256')
  for (const [path, contents] of [...files].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    addText(hash, path)
    addText(hash, createHash('sha256').update(contents).digest('hex'))
  }
  return hash.digest('hex')
}

import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { ModelManifest } from '@tutti/api'
import { type Clock, flagRefusal, type Logger, type OpenTransfer, readPairs } from '@tutti/chassis'
import { cloudIdentity } from '@tutti/cloud-identity'
import { ServeError } from '@tutti/errors'
import {
  cloudBuckets,
  fetchArtifact,
  isFetched,
  readCredentials,
  verifyArtifact,
} from '@tutti/repository'
import type { ManifestFlags } from './manifest-flags.ts'

export interface StorageDependencies {
  readonly flags: Pick<ManifestFlags, 'storage-map' | 'secret-map'>
  /** Folder that keeps fetched models. */
  readonly cache: string
  /** Environment, which may have the token and the address of a Hub. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly log: Pick<Logger, 'warn'>
  /** Opens the transfer that shows the progress of a fetch. */
  readonly openTransfer?: OpenTransfer
}

/** A claim, or an image with its tag or digest. */
const PLACE = /^(?:pvc:\/\/[^/]+|image:\/\/.*:[^/:]+)/

type Storage = Pick<ModelManifest['spec'], 'storageUri' | 'storage'>

/**
 * Makes the error of a place that cannot be found. Its text begins with the path of the field, because it is an error of the
 * field.
 */
function refusal(field: string, text: string, cause?: unknown): ServeError {
  const { reason = 'CONFIG_INVALID' } = cause instanceof ServeError ? cause : {}
  return new ServeError(reason, `${field}: ${text}`, { details: { field }, cause })
}

/** Finds the folders of Models on this machine. */
export class StoragePlaces {
  readonly #dependencies: StorageDependencies
  readonly #places: ReadonlyMap<string, string>
  readonly #secrets: ReadonlyMap<string, string>

  /** @throws ServeError FLAG_INVALID for an invalid map. */
  constructor(o: StorageDependencies) {
    const { places, secrets } = readStorageMaps(o.flags)
    this.#dependencies = o
    this.#places = places
    this.#secrets = secrets
  }

  /**
   * Finds the directory of a Model, or fetches it.
   *
   * @returns its path.
   * @throws ServeError whose text begins with the field at fault.
   */
  async find({ storageUri, storage }: Storage): Promise<string> {
    if (isFetched(storageUri)) return await this.#fetch({ storageUri, storage })
    const directory = this.#mapped(storageUri)
    const isThere = await stat(directory).then(
      (found) => found.isDirectory(),
      () => false,
    )
    if (!isThere) throw refusal('storageUri', `'${storageUri}' is ${directory}, which is no folder`)
    if (storage?.digest === undefined) return directory
    try {
      await verifyArtifact(directory, { digest: storage.digest })
    } catch (error) {
      throw refusal('storage.digest', ServeError.from(error).message, error)
    }
    return directory
  }

  #mapped(storageUri: string): string {
    const prefixes = [...this.#places.keys()].filter(
      (prefix) => storageUri === prefix || storageUri.startsWith(`${prefix}/`),
    )
    const longest = prefixes.toSorted((a, b) => b.length - a.length)[0]
    const place = longest === undefined ? undefined : this.#places.get(longest)
    if (longest !== undefined && place !== undefined) {
      return join(place, storageUri.slice(longest.length))
    }
    if (storageUri.startsWith('hostPath://')) return resolve(storageUri.slice('hostPath://'.length))
    const [prefix = ''] = PLACE.exec(storageUri) ?? []
    throw refusal('storageUri', `'${storageUri}' is not here, want --storage-map ${prefix}=DIR`)
  }

  async #fetch({ storageUri: uri, storage }: Storage): Promise<string> {
    const { cache, env, clock, signal, log, openTransfer } = this.#dependencies
    const secret = storage?.secretRef?.name
    const folder = secret === undefined ? undefined : this.#secrets.get(secret)
    if (secret !== undefined && folder === undefined) {
      throw refusal('storage.secretRef', `'${secret}' is not here, want --secret-map ${secret}=DIR`)
    }
    // One place for each address: what lies there is not fetched again.
    const key = createHash('sha256').update(uri).digest('hex').slice(0, 24)
    const to = join(cache, key, 'model')
    try {
      const credentials = await readCredentials(folder, env)
      const digest = storage?.digest
      const openBucket = cloudBuckets({ env, clock, identity: cloudIdentity })
      await fetchArtifact({
        uri,
        to,
        digest,
        credentials,
        openBucket,
        clock,
        signal,
        log,
        openTransfer,
      })
      return to
    } catch (error) {
      throw refusal('storageUri', ServeError.from(error).message, error)
    }
  }
}

/**
 * Reads `--storage-map` and `--secret-map`.
 *
 * @returns absolute paths of folders.
 * @throws ServeError FLAG_INVALID for an invalid map.
 */
export function readStorageMaps(flags: Pick<ManifestFlags, 'storage-map' | 'secret-map'>) {
  const places = readPairs('--storage-map', flags['storage-map'], 'URI=DIR')
  const secrets = readPairs('--secret-map', flags['secret-map'], 'NAME=DIR')
  return {
    places: new Map([...places].map(([uri, folder]) => [toPrefix(uri), resolve(folder)])),
    secrets: new Map([...secrets].map(([name, folder]) => [name, resolve(folder)])),
  }
}

function toPrefix(uri: string): string {
  if (PLACE.test(uri) || uri.startsWith('hostPath:///')) return uri.replace(/\/+$/, '')
  const want =
    'want pvc://CLAIM[/PATH]=DIR, image://REPOSITORY:TAG[/PATH]=DIR or hostPath:///PATH=DIR'
  throw flagRefusal('--storage-map', `"${uri}": ${want}`)
}

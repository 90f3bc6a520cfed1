import {
  type BeyondConfig,
  type EnsembleManifest,
  type Manifest,
  type ModelManifest,
  modelNameOf,
  toBeyondConfig,
  toConfigOverrides,
  toModelOverrides,
} from '@tutti/api'
import { type Clock, type Logger, type StatusLine, TransferProgress } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Graph } from '@tutti/graph'
import { printModelConfig } from '@tutti/model-config'
import { type ConfigOverrides, type ModelDirectory, OverrideDirectories } from '@tutti/repository'
import type { BackendConfig, ModelFlags } from '@tutti/step'
import {
  type LocatedManifest,
  type ParsedManifests,
  type Problem,
  problemOf,
} from '../manifests/parse-manifests.ts'
import {
  type ReadRepository,
  type RepositoryReading,
  readRepository,
} from '../manifests/repository-configs.ts'
import { NamespaceManifests } from '../validate/namespace-manifests.ts'
import {
  checkServedManifests,
  type ManifestSource,
  readServedManifests,
  refuseManifests,
} from '../validate/served-manifests.ts'
import { ignoredFields } from './ignored-fields.ts'
import type { ManifestFlags } from './manifest-flags.ts'
import { StoragePlaces } from './storage-places.ts'

/** The models and ensembles of manifests, in the form in which a model repository takes them. */
export interface OpenedManifests {
  readonly directories: readonly ModelDirectory[]
  readonly overrides: ConfigOverrides
  readonly beyond: BeyondConfig
  /** Graphs of the Ensembles, by served name. */
  readonly graphs: ReadonlyMap<string, Graph>
  /** Deletes the files that were written for Ensembles. */
  close(): Promise<void>
}

type ReadingFlags = Pick<
  ModelFlags,
  'model-repository' | 'model-config-name' | 'disable-auto-complete-config' | 'backend-directory'
>

export interface OpenManifestsOptions extends ManifestSource {
  readonly flags: ManifestFlags & ReadingFlags
  /** Settings of backends for the completion of configurations; the defaults if absent. */
  readonly backends?: BackendConfig
  /** Folder that keeps fetched models. */
  readonly cache: string
  /** Environment of the process; fetches read the token and the address of a Hub there. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly log: Logger
  readonly statusLine?: StatusLine | undefined
  readonly signal: AbortSignal
}

/**
 * Reads manifests, finds or fetches the folders of their Models, and checks all as `tutti validate` does. The caller closes the
 * result.
 *
 * @throws ServeError FLAG_INVALID for a file that cannot be read; CONFIG_INVALID for a refused manifest, after `err` has got the
 * reasons.
 */
export async function openManifests(o: OpenManifestsOptions): Promise<OpenedManifests> {
  const parsed = await readServedManifests(o)
  const models = parsed.manifests.filter(isModel)
  const directories = await findDirectories(o, parsed, models)
  const said = new Map(
    models.map(({ manifest }) => [modelNameOf(manifest), toModelOverrides(manifest.spec)]),
  )
  const overrides = toConfigOverrides(said)
  const beyond = toBeyondConfig(said)
  const { unbatched } = beyond
  const reading = { ...toReading(o), directories, overrides, unbatched }
  const repository = await readRepository(o.flags['model-repository'], reading)
  // All models are known here: what is pending does not come.
  await checkServedManifests(o, parsed, { repository })
  logIgnored(o.log, parsed.manifests)
  const written = new OverrideDirectories()
  try {
    const ensembles = await writeEnsembles(parsed, repository, written)
    return {
      directories: [...directories, ...ensembles.directories],
      overrides,
      beyond,
      graphs: ensembles.graphs,
      close: () => written.close(),
    }
  } catch (error) {
    await written.close()
    throw error
  }
}

/** Builds the options with which configurations are checked: as they will be served. */
function toReading({ flags, backends }: OpenManifestsOptions): RepositoryReading {
  const configName = flags['model-config-name']
  return {
    autoComplete: !flags['disable-auto-complete-config'],
    ...(backends && { backends }),
    backendDirectory: flags['backend-directory'],
    ...(configName !== undefined && { configName }),
  }
}

interface LocatedModel extends LocatedManifest {
  readonly manifest: ModelManifest
}

function isModel(located: LocatedManifest): located is LocatedModel {
  return located.manifest.kind === 'Model'
}

async function findDirectories(
  o: OpenManifestsOptions,
  parsed: ParsedManifests,
  models: readonly LocatedModel[],
): Promise<readonly ModelDirectory[]> {
  const { flags, cache, env, clock, log, signal } = o
  const progress = new TransferProgress(o)
  const openTransfer = (uri: string) => progress.open(uri)
  const places = new StoragePlaces({ flags, cache, env, clock, signal, log, openTransfer })
  const directories: ModelDirectory[] = []
  const problems: Problem[] = []
  for (const located of models) {
    const { manifest } = located
    try {
      const path = await places.find(manifest.spec)
      directories.push({ name: modelNameOf(manifest), path })
    } catch (error) {
      const { details, message } = ServeError.from(error)
      const path = ['spec', ...(details.field ?? '').split('.')]
      problems.push(problemOf(located, path, 'StorageUnavailable', message))
    }
  }
  refuseManifests(o, parsed, problems)
  return directories
}

/** Logs ignored fields in one line for all manifests. */
function logIgnored(log: Logger, manifests: readonly LocatedManifest[]): void {
  const fields = manifests.flatMap(({ manifest }) => {
    const names = ignoredFields(manifest)
    const resource = `${manifest.kind}/${manifest.metadata.name}`
    return names.length === 0 ? [] : [`${resource}: ${names.join(', ')}`]
  })
  if (fields.length > 0) log.info('fields without effect outside of Kubernetes', { fields })
}

/** Writes what a repository would hold of each Ensemble, for this process: an Ensemble has no files. */
async function writeEnsembles(
  { manifests }: ParsedManifests,
  repository: ReadRepository,
  written: OverrideDirectories,
): Promise<Pick<OpenedManifests, 'directories' | 'graphs'>> {
  const all = manifests.map(({ manifest }) => manifest)
  const namespace = new NamespaceManifests(all, repository)
  const directories: ModelDirectory[] = []
  const graphs = new Map<string, Graph>()
  for (const manifest of all.filter(isEnsemble)) {
    const name = modelNameOf(manifest)
    const result = namespace.check(manifest)
    if (!result.accepted) throw new ServeError('INTERNAL', `bug: ${result.message}`)
    const config = Buffer.from(printModelConfig(result.config))
    // A dot file makes the folder of the version and is no part of it.
    const files = new Map([
      ['config.pbtxt', config],
      ['1/.ensemble', Buffer.alloc(0)],
    ])
    const { path } = await written.write(name, files)
    directories.push({ name, path })
    graphs.set(name, result.graph)
  }
  return { directories, graphs }
}

function isEnsemble(manifest: Manifest): manifest is EnsembleManifest {
  return manifest.kind === 'Ensemble'
}

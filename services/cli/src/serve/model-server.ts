import { randomBytes } from 'node:crypto'
import { CudaImports, type Engine, type Engines } from '@tutti/backends'
import {
  type Clock,
  type FlagValues,
  type Logger,
  limitLog,
  ofEachModel,
  type StartOptions,
} from '@tutti/chassis'
import { cloudIdentity } from '@tutti/cloud-identity'
import type { ConsoleSource } from '@tutti/console'
import {
  type ModelRepository,
  pollRepository,
  RepositoryWatch,
  repositoryUnreadable,
} from '@tutti/repository'
import { NamespacedModels, openRouter, RepositoryControl, type Router } from '@tutti/router'
import { openRegions, type ProcessBase } from '@tutti/server'
import { type InferenceBackend, refuseFailures } from '@tutti/serving'
import { type BackendConfig, openModels, type Step } from '@tutti/step'
import { chooseStartModels } from './control-flags.ts'
import type { OpenedManifests } from './open-manifests.ts'
import type { SERVE_FLAGS } from './serve-flags.ts'

/** Milliseconds for which clients that ask for the index again and again get the same list of a bucket. */
const INDEX_MAX_AGE_MS = 5000

type ServeFlags = FlagValues<typeof SERVE_FLAGS>

/** The step and the router behind the gRPC and HTTP servers of `tutti serve`. */
export interface ModelServer {
  readonly step: Step
  readonly router: Router
  /** The router as clients see it. */
  readonly backend: InferenceBackend & ConsoleSource
  /** Number of models that could not be loaded at the start. */
  readonly failedModels: number
}

export interface ModelServerOptions extends Pick<StartOptions<typeof SERVE_FLAGS>, 'statusLine'> {
  readonly flags: ServeFlags
  /** Signal that aborts the start, when a stop signal comes before its end. */
  readonly signal?: AbortSignal | undefined
  /** Manifests to serve beside the repositories. The caller closes them. */
  readonly manifests?: OpenedManifests | undefined
  /** Engines of a test; those of this build if absent. */
  readonly engines?: Engines | readonly Engine[] | undefined
  /** Settings of backends; those of `--backend-config` if absent. */
  readonly backends?: BackendConfig | undefined
  /** Called when the models close, also after a start that failed. */
  readonly onClose?: (() => void) | undefined
}

/**
 * Opens one step and one router over the same repositories; the router calls the step. Resolves when the models of the start have
 * loaded or failed. Both close with `shared`.
 *
 * @throws ServeError if a repository cannot be read, or, with `--exit-on-error`, if a model fails.
 */
export async function openModelServer(
  shared: ProcessBase,
  o: ModelServerOptions,
): Promise<ModelServer> {
  const { flags, manifests } = o
  const { clock, opened, stopping } = shared
  // Clients load and unload.
  const log = limitLog(shared.log, { clock }, ofEachModel)
  const isNamespaced = flags['model-namespacing']
  const { step, repository } = openModels(shared, {
    flags,
    statusLine: o.statusLine,
    engines: o.engines,
    backends: o.backends,
    log,
    places: { ...manifests, isNamespaced, identity: cloudIdentity },
    beyond: manifests?.beyond,
    replica: randomBytes(5).toString('hex'),
    builtins: true,
    unpinned: (pin) => router.whenUnpinned(pin),
    routers: () => ({ executor: router.nested, ask: router.answer }),
    control: () => backend.control,
    resolveFrom: isNamespaced ? (from, name) => namespaced.resolveFrom(from, name) : undefined,
  })
  opened.defer(() => o.onClose?.())
  let isControlled = false
  const router: Router = openRouter(shared, {
    flags,
    local: step,
    ensembles: [],
    takesDown: true,
    // Not before the models of the start are loaded.
    control: () => (isControlled ? control : undefined),
    regions: openClientMemory(flags, opened),
    // If it cannot be read now, what is known already is listed.
    listNames: () => repository.names(INDEX_MAX_AGE_MS).catch(() => undefined),
    log,
  })
  const namespaced = new NamespacedModels({ router, repository })
  const backend = isNamespaced ? namespaced : router
  const { graphs } = manifests ?? {}
  const control = new RepositoryControl({ router, repository, graphs, hosts: step.models, log })
  const { watch, failedModels } = await loadStartModels(o, { control, repository })
  isControlled = flags['model-control-mode'] === 'explicit'
  const ended = watch && followRepository(watch, { flags, clock, log, control, signal: stopping })
  opened.defer(() => repository.abandon(ended))
  return { step, router, backend, failedModels }
}

function openClientMemory(flags: ServeFlags, opened: AsyncDisposableStack) {
  const cuda = new CudaImports()
  return openRegions({
    flags,
    isOneProcess: true,
    openCudaMemory: (handle, deviceId) => cuda.open(handle, deviceId),
    opened,
  })
}

/** @returns what looks for changes, in the mode that follows them, and how many models failed. */
async function loadStartModels(
  { flags, signal }: ModelServerOptions,
  o: { readonly control: RepositoryControl; readonly repository: ModelRepository },
): Promise<{ readonly watch: RepositoryWatch | undefined; readonly failedModels: number }> {
  const watch = new RepositoryWatch(o.repository)
  const isFollowed = flags['model-control-mode'] === 'poll'
  const failures = await o.repository.untilStopped(signal, async () => {
    const names = isFollowed ? await watch.start() : await o.repository.names()
    return await o.control.loadAll(chooseStartModels(flags, names))
  })
  if (flags['exit-on-error']) refuseFailures(failures)
  return { watch: isFollowed ? watch : undefined, failedModels: failures.size }
}

function followRepository(
  watch: RepositoryWatch,
  o: {
    readonly flags: ServeFlags
    readonly clock: Clock
    readonly log: Logger
    readonly control: RepositoryControl
    readonly signal: AbortSignal
  },
): Promise<void> {
  const { flags, clock, log, control, signal } = o
  return pollRepository({
    watch,
    pollMs: flags['repository-poll-secs'] * 1000,
    clock,
    signal,
    apply: (changes) => control.follow(changes),
    failed: (error) => repositoryUnreadable(log, error),
  })
}

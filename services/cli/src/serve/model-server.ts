import { randomBytes } from 'node:crypto'
import { CudaImports, type Engine, type Engines } from '@tutti/backends'
import {
  type Clock,
  type FlagValues,
  limitLog,
  ofEachModel,
  openTracing,
  type StartOptions,
} from '@tutti/chassis'
import { cloudIdentity } from '@tutti/cloud-identity'
import type { ConsoleSource } from '@tutti/console'
import { type ModelRepository, pollRepository, RepositoryWatch } from '@tutti/repository'
import { openCache } from '@tutti/response-cache'
import { NamespacedModels, RepositoryControl, Router } from '@tutti/router'
import { openRegions } from '@tutti/server'
import { type InferenceBackend, refuseFailures } from '@tutti/serving'
import {
  type BackendConfig,
  openEngines,
  openRepository,
  openStep,
  readBackendConfig,
  type Step,
  toStepSettings,
} from '@tutti/step'
import { readMetricsFlags, ServerMetrics } from '@tutti/telemetry'
import { StepDirectory } from '@tutti/transport'
import { repositoryUnreadable } from '../log-events.ts'
import { chooseStartModels } from './control-flags.ts'
import type { OpenedManifests } from './open-manifests.ts'
import type { SERVE_FLAGS } from './serve-flags.ts'

/** Milliseconds for which clients that ask for the index again and again get the same list of a bucket. */
const INDEX_MAX_AGE_MS = 5000

type ServeFlags = FlagValues<typeof SERVE_FLAGS>

/** Everything behind the servers of `tutti serve`. */
export interface ModelServer {
  readonly step: Step
  readonly router: Router
  /** The router as clients see it. */
  readonly backend: InferenceBackend & ConsoleSource
  readonly metrics: ServerMetrics
  /** How many models of the start could not be loaded. */
  readonly failedModels: number
  /** Follows changes of the repositories no more. */
  stop(): void
  close(): Promise<void>
}

export interface ModelServerOptions
  extends Pick<
    StartOptions<typeof SERVE_FLAGS>,
    'flags' | 'settings' | 'env' | 'log' | 'statusLine'
  > {
  readonly clock: Clock
  /** Aborts when a stop signal comes before the start is done. */
  readonly signal?: AbortSignal | undefined
  /** Served beside the repositories; closed here. */
  readonly manifests?: OpenedManifests | undefined
  /** Those of this build unless a test has its own. */
  readonly engines?: Engines | readonly Engine[] | undefined
  /** Those of `--backend-config` if absent. */
  readonly backends?: BackendConfig | undefined
}

/**
 * One step and one router over the same repositories; the router calls the step. Resolves when the models of the start are
 * loaded.
 *
 * @throws ServeError if a repository cannot be read, or, with `--exit-on-error`, a model fails.
 */
export async function openModelServer(o: ModelServerOptions): Promise<ModelServer> {
  const opened = new AsyncDisposableStack()
  // Clients load and unload.
  const log = limitLog(o.log, { clock: o.clock }, ofEachModel)
  try {
    return await openServer({ ...o, log }, opened)
  } catch (error) {
    await opened.disposeAsync()
    throw error
  }
}

function openMetrics(flags: ServeFlags): ServerMetrics {
  const pinnedPoolBytes = flags['pinned-memory-pool-byte-size']
  return new ServerMetrics({ latencies: readMetricsFlags(flags), pinnedPoolBytes })
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

/** The engines, and what else the flags say of a step. */
function openBackends(given: ModelServerOptions, metrics: ServerMetrics) {
  const { flags, env, log, engines } = given
  const { defaultMaxBatchSize, ...backends } =
    given.backends ?? readBackendConfig(flags['backend-config'])
  const { 'backend-directory': backendDirectory, 'allow-gpu-metrics': gpuMetrics } = flags
  const settings = toStepSettings(flags, env)
  const { hostPolicies } = settings
  const o = { log, metrics, backendDirectory, gpuMetrics, hostPolicies, ...backends }
  return { ...settings, engines: engines ?? openEngines(o), defaultMaxBatchSize }
}

async function openServer(
  o: ModelServerOptions,
  opened: AsyncDisposableStack,
): Promise<ModelServer> {
  const { flags, settings, log, clock, manifests, statusLine } = o
  const isNamespaced = flags['model-namespacing']
  opened.defer(async () => manifests?.close())
  const metrics = openMetrics(flags)
  const tracing = opened.adopt(await openTracing({ ...settings, log }), (one) => one.shutdown())
  const cache = await openCache(flags, { clock, metrics, log, env: o.env, opened })
  const places = { ...manifests, env: o.env ?? {}, isNamespaced }
  const repository = openRepository(flags, { ...places, log, statusLine, identity: cloudIdentity })
  opened.defer(() => repository.close())
  const replica = randomBytes(5).toString('hex')
  let isControlled = false
  const step = openStep({
    replica,
    repository,
    unpinned: (pin) => router.whenUnpinned(pin),
    ...openBackends(o, metrics),
    ...manifests?.beyond,
    routers: () => ({ executor: router.nested, ask: router.answer }),
    control: () => backend.control,
    resolveFrom: isNamespaced ? (from, name) => namespaced.resolveFrom(from, name) : undefined,
    cache,
    clock,
    log,
    metrics,
  })
  const router: Router = new Router({
    ensembles: [],
    directory: new StepDirectory(),
    replicas: step,
    strictReadiness: flags['strict-readiness'],
    nesting: { maxDepth: flags['max-bls-depth'], maxRequests: flags['max-bls-requests'] },
    takesDown: true,
    // Not before the models of the start are loaded.
    control: () => (isControlled ? control : undefined),
    regions: openClientMemory(flags, opened),
    // If it cannot be read now, what is known already is listed.
    listNames: () => repository.names(INDEX_MAX_AGE_MS).catch(() => undefined),
    cache,
    clock,
    log,
    tracing,
    metrics,
  })
  const namespaced = new NamespacedModels({ router, repository })
  const backend = isNamespaced ? namespaced : router
  const { rules } = manifests ?? {}
  const control = new RepositoryControl({ router, repository, rules, hosts: step.models, log })
  opened.defer(() => step.close())
  opened.defer(followStep(step, router, replica))
  const polling = new AbortController()
  const { watch, failedModels } = await loadStartModels(o, { control, repository })
  isControlled = flags['model-control-mode'] === 'explicit'
  const ended = watch && followRepository(watch, o, { control, signal: polling.signal })
  opened.defer(() => repository.abandon(ended))
  opened.defer(() => polling.abort())
  const stop = (): void => polling.abort()
  return { step, router, backend, metrics, failedModels, stop, close: () => opened.disposeAsync() }
}

/** Tells the router at once what the step serves: in one process nothing comes between. @returns ends it. */
function followStep(step: Step, router: Router, replica: string): () => void {
  const learn = (): void => {
    router.view.describe({ replica, models: step.served() }, step.control, step.retired())
  }
  learn()
  return step.onChange(learn)
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
  { flags, clock, log }: ModelServerOptions,
  o: { readonly control: RepositoryControl; readonly signal: AbortSignal },
): Promise<void> {
  return pollRepository({
    watch,
    pollMs: flags['repository-poll-secs'] * 1000,
    clock,
    signal: o.signal,
    apply: (changes) => o.control.follow(changes),
    failed: (error) => repositoryUnreadable(log, error),
  })
}

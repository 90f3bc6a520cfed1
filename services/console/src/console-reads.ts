import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { isDecoupled, type ModelConfig, modelMetadata } from '@tutti/model-config'
import type { IndexEntry, InferenceBackend } from '@tutti/serving'
import type { ClusterState, UnreadyResource } from './api/cluster.ts'
import type { Counts } from './api/counts.ts'
import type { Graph, ModelDetail } from './api/model-detail.ts'
import type { Overview, OverviewModel, Version } from './api/overview.ts'
import type { ClusterSource, ConsoleModel, ConsoleSource } from './console-source.ts'
import { nextMs } from './next-ms.ts'
import { readCluster } from './read-cluster.ts'
import { NO_COUNTS, readCounts } from './read-counts.ts'
import { composingModels, type KnownStep, readGraph, toTensors } from './read-graph.ts'
import { maySeeOperations } from './read-next-request.ts'
import { readReplicas } from './read-replicas.ts'

export interface ConsoleReadsOptions {
  readonly source: Omit<ConsoleSource, 'waitForRequest' | 'stopWaiting'>
  readonly cluster?: ClusterSource | undefined
  /** Facts about the server. Only callers who may see replicas get its host. */
  readonly server: Omit<Overview['server'], 'isReady' | 'others'>
  readonly mayInfer: boolean
  readonly http: ModelDetail['http']
  readonly clock: Clock
}

/** Milliseconds between two readings of the list, and of a model. */
const LIST_MS = 2000
const MODEL_MS = 1000
/** A step that hangs must not take away what is known of it, and in three seconds it is gone. */
const ANSWER_MS = 1500

/** The reads of the page, each limited to the models in its caller's index. It keeps nothing, and runs only when a page asks. */
export class ConsoleReads {
  readonly #options: ConsoleReadsOptions

  constructor(o: ConsoleReadsOptions) {
    this.#options = o
  }

  async overview(backend: InferenceBackend): Promise<Overview> {
    const { source, clock } = this.#options
    const { host, ...server } = this.#options.server
    const versions = groupVersions(await backend.repositoryIndex(false))
    const [{ countsOf, countsFailure }, cluster] = await Promise.all([
      this.#count(versions.keys()),
      this.#readCluster(backend, () => true),
    ])
    const models = [...versions].map(([name, all]): OverviewModel => {
      const found = this.#options.source.find(name)
      return { ...described(name, found), versions: all, counts: countsOf(name) }
    })
    return {
      server: {
        ...server,
        isReady: backend.isReady(),
        ...(maySeeOperations(backend) && { ...(host && { host }), others: source.otherRouters() }),
      },
      atMs: clock.now(),
      nextMs: nextMs(LIST_MS, models.length),
      countsFailure,
      models,
      ...cluster,
    }
  }

  /** Reads the details of a model. @throws ServeError MODEL_NOT_FOUND if the caller's index does not name it. */
  async model(backend: InferenceBackend, name: string): Promise<ModelDetail> {
    const { source, clock, mayInfer, http } = this.#options
    const versions = groupVersions(await backend.repositoryIndex(false))
    const own = versions.get(name)
    if (own === undefined) {
      throw new ServeError('MODEL_NOT_FOUND', `model '${name}' is not found`)
    }
    const found = source.find(name)
    const config = found?.config
    const steps = found === undefined ? [] : composingModels(found)
    const asked = [name, ...steps.filter((model) => versions.has(model))]
    const [{ countsOf, countsFailure }, cluster] = await Promise.all([
      this.#count(asked),
      this.#readCluster(backend, ({ model }) => model === name),
    ])
    const graph = found && this.#graph(found, { versions, countsOf })
    const ensemble = found?.kind === 'ensemble' ? name : undefined
    const runs = { models: new Set(asked), ensemble }
    return {
      ...described(name, found),
      ...signature(config, found),
      versions: own,
      ...(graph && { graph }),
      ...(maySeeOperations(backend) && { replicas: readReplicas(source, runs) }),
      ...cluster,
      usedBy: [...versions.keys()].filter((other) => calls(source.find(other), name)),
      mayInfer,
      mayCatch: maySeeOperations(backend),
      http,
      atMs: clock.now(),
      nextMs: nextMs(MODEL_MS, versions.size),
      countsFailure,
      counts: countsOf(name),
    }
  }

  /**
   * Reads the cluster's state for callers that may see it. It covers only models that they may call: the index names no refused
   * model.
   */
  async #readCluster(
    backend: InferenceBackend,
    isWanted: (one: UnreadyResource) => boolean,
  ): Promise<{ readonly cluster?: ClusterState }> {
    const { cluster } = this.#options
    if (cluster === undefined || !maySeeOperations(backend)) return {}
    const mayCall = (model: string): boolean => backend.identity?.mayCall(model) ?? true
    const inTime = <T>(asked: Promise<T>, who: string): Promise<T> => this.#inTime(asked, who)
    return {
      cluster: await readCluster(cluster, {
        isWanted: (one) => isWanted(one) && mayCall(one.model),
        inTime,
      }),
    }
  }

  #graph(
    { name, config, plan }: ConsoleModel,
    o: { readonly versions: ReadonlyMap<string, readonly Version[]>; readonly countsOf: CountsOf },
  ): Graph | undefined {
    const { source } = this.#options
    const known = (model: string): KnownStep | undefined => {
      const all = o.versions.get(model)
      if (all === undefined) return undefined
      const failures = o.countsOf(model)?.failures
      return { config: source.find(model)?.config, isReady: all.some(isReady), failures }
    }
    return config && readGraph({ config, plan, known, totals: source.stepTotals(name) })
  }

  /** Counts requests. If a step does not answer there are no counts, but states stay. */
  async #count(names: Iterable<string>): Promise<{
    readonly countsOf: CountsOf
    readonly countsFailure: string
  }> {
    const { source } = this.#options
    const isEnsemble = (name: string): boolean => source.find(name)?.kind === 'ensemble'
    try {
      const asked = source.statisticsOf(new Set(names))
      const counts = readCounts(await this.#inTime(asked, 'a step'), isEnsemble)
      return { countsOf: (name) => counts.get(name) ?? NO_COUNTS, countsFailure: '' }
    } catch (error) {
      return { countsOf: () => undefined, countsFailure: ServeError.from(error).message }
    }
  }

  /** @throws ServeError STEP_UNAVAILABLE, or what it rejects with. */
  async #inTime<T>(asked: Promise<T>, who: string): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>()
    const text = `${who} has not answered within ${ANSWER_MS} ms`
    const stop = this.#options.clock.setTimer(ANSWER_MS, () => {
      reject(new ServeError('STEP_UNAVAILABLE', text))
    })
    return await Promise.race([asked, promise]).finally(stop)
  }
}

type CountsOf = (name: string) => Counts | undefined

function described(name: string, found: ConsoleModel | undefined) {
  const { config, kind } = found ?? {}
  const platform = config?.platform || config?.backend || ''
  return { name, kind: kind ?? 'unknown', platform } as const
}

function signature(config: ModelConfig | undefined, found: ConsoleModel | undefined) {
  if (config === undefined) {
    return { maxBatchSize: 0, isDecoupled: false, inputs: [], outputs: [] }
  }
  const { inputs, outputs } = modelMetadata(config, [])
  return {
    maxBatchSize: config.max_batch_size,
    isDecoupled: found?.plan?.decoupled ?? isDecoupled(config),
    inputs: toTensors(inputs, config),
    outputs: toTensors(outputs, config),
  }
}

function calls(other: ConsoleModel | undefined, name: string): boolean {
  return other !== undefined && composingModels(other).includes(name)
}

function groupVersions(index: readonly IndexEntry[]): ReadonlyMap<string, Version[]> {
  const groups = new Map<string, Version[]>()
  for (const { name, version, state, reason } of index) {
    const group = groups.get(name) ?? []
    // Without a state: it could be loaded, and is not.
    group.push({ version, state: state || 'NOT LOADED', reason })
    groups.set(name, group)
  }
  return groups
}

function isReady({ state }: Version): boolean {
  return state === 'READY'
}

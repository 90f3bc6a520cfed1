import type { Clock } from '@tutti/chassis'
import { fallbackOf } from '@tutti/graph'
import { type ResponseCache } from '@tutti/response-cache'
import { isUnloadedReason } from '@tutti/serving'
import {
  type CacheObserver,
  firstResponseBuckets,
  type ServerMetrics,
  StatisticsRecorder,
  type StepLabels,
} from '@tutti/telemetry'
import type { RequestObserver } from '@tutti/tensor'
import { type Catalog, type CatalogEnsemble, EMPTY_CATALOG } from '../catalog/catalog.ts'

interface RecordedVersion {
  readonly ensemble: string
  readonly recorder: StatisticsRecorder
  readonly observer: RequestObserver
  readonly cacheObserver: CacheObserver | undefined
  /** Labels of the steps, whose series are removed with the ensemble. */
  steps: ReadonlyMap<string, StepLabels>
}

/**
 * A recorder for each version of the ensembles. It outlives changes of the catalog, so that counts go on, until the ensemble is
 * unloaded.
 */
export class EnsembleRecorders {
  readonly #clock: Clock
  readonly #metrics: ServerMetrics
  readonly #hasCache: boolean
  readonly #recorded = new Map<string, RecordedVersion>()
  #followed: Catalog = EMPTY_CATALOG

  constructor(o: {
    readonly clock: Clock
    readonly metrics: ServerMetrics
    readonly cache?: ResponseCache | undefined
  }) {
    this.#clock = o.clock
    this.#metrics = o.metrics
    this.#hasCache = o.cache !== undefined
  }

  get all(): readonly StatisticsRecorder[] {
    return [...this.#recorded.values()].map(({ recorder }) => recorder)
  }

  /** Finds what observes the requests to a version of an ensemble, and its cache. */
  find(
    ensemble: string,
    version: number,
  ): Pick<RecordedVersion, 'observer' | 'cacheObserver'> | undefined {
    return this.#recorded.get(keyOf(ensemble, version))
  }

  /** Makes the recorders that the catalog needs, and drops those of ensembles that were unloaded. */
  follow(catalog: Catalog): void {
    for (const [key, { ensemble }] of this.#recorded) {
      const entry = catalog.models.get(ensemble)
      if (entry?.kind !== 'ensemble' || entry.versions.some(isUnloaded)) this.#remove(key)
    }
    for (const entry of catalog.models.values()) {
      // Most are those of before: a change of one model should not cost what all ensembles do.
      if (entry.kind !== 'ensemble' || entry === this.#followed.models.get(entry.name)) continue
      for (const version of entry.versions)
        if (!isUnloaded(version)) this.#add(entry, version.version)
    }
    this.#followed = catalog
  }

  #add(entry: CatalogEnsemble, version: number): void {
    const { name: ensemble, plan } = entry
    const labels = (plan?.steps ?? []).flatMap((step) => {
      const fallback = fallbackOf(step.call)
      const own = step.builtin?.config.name ?? step.model
      const models = fallback === undefined ? [own] : [own, fallback.model]
      return models.map((model) => ({ ensemble, step: step.name, model }))
    })
    const steps = new Map(labels.map((step) => [JSON.stringify(step), step]))
    const known = this.#recorded.get(keyOf(ensemble, version)) ?? this.#open(entry, version)
    for (const [key, step] of known.steps) if (!steps.has(key)) this.#metrics.removeStep(step)
    for (const [key, step] of steps) if (!known.steps.has(key)) this.#metrics.addStep(step)
    known.steps = steps
  }

  #open({ name, config }: CatalogEnsemble, version: number): RecordedVersion {
    const clock = this.#clock
    const recorder = new StatisticsRecorder({
      name,
      version: String(version),
      isEnsemble: true,
      hasCache: this.#hasCache && config?.response_cache?.enable === true,
      clock,
    })
    const opened = {
      ensemble: name,
      recorder,
      observer: this.#metrics.observerOf(recorder),
      cacheObserver: this.#metrics.cacheObserverOf(recorder),
      steps: new Map(),
    }
    this.#recorded.set(keyOf(name, version), opened)
    // The version does not count: Triton's EnsembleScheduler reports all of an ensemble's metrics under 1.
    this.#metrics.addModel(recorder, {
      name,
      version: '1',
      tags: config?.metric_tags ?? {},
      buckets: firstResponseBuckets(config),
    })
    return opened
  }

  #remove(key: string): void {
    const known = this.#recorded.get(key)
    if (known === undefined) return
    this.#recorded.delete(key)
    this.#metrics.removeModel(known.recorder)
    for (const step of known.steps.values()) this.#metrics.removeStep(step)
  }
}

function isUnloaded({ reason }: { readonly reason: string }): boolean {
  return isUnloadedReason(reason)
}

function keyOf(ensemble: string, version: number): string {
  return `${ensemble} ${version}`
}

import type { ServedModel, StepControl } from '@tutti/ensemble'
import type { ServerMetrics } from '@tutti/front-door'
import type { EnvelopeHandler } from '@tutti/transport'
import { createEnvelopeHandler } from './envelope-handler.ts'
import { type HostedModel, type HostedVersion, toServedModel } from './hosted-model.ts'
import { mapBounded } from './load/bounded.ts'
import { loadModel, unloadVersion } from './load/load-model.ts'
import { StepEvents } from './log-events.ts'
import type { Step, StepLoad } from './step.ts'
import { type StepOptions, type StepSettings, withDefaults } from './step-options.ts'

/**
 * Loads the models that are no ensembles and serves them. Resolves when every model is READY or has failed;
 * a failed one is described with its reason and does not keep the others from serving.
 */
export async function openStep(options: StepOptions): Promise<Step> {
  const settings = withDefaults(options)
  const events = new StepEvents(settings.log)
  const step = new HostingStep(settings, events)
  const o = { ...settings, dropped: () => step.countDropped() }
  await mapBounded(settings.models, settings.loadParallelism, async (model) => {
    const hosted = await loadModel(model, o, events)
    if (hosted !== undefined) step.add(hosted)
  })
  return step
}

/** Owns the models of the process. */
class HostingStep implements Step {
  readonly handle: EnvelopeHandler
  readonly control: StepControl
  readonly #events: StepEvents
  readonly #metrics: ServerMetrics | undefined
  readonly #models = new Map<string, HostedModel>()
  /** By name: models load in no fixed order, and answers should not vary with it. */
  #sorted: readonly HostedModel[] = []
  readonly #listeners = new Set<() => void>()
  #isDraining = false
  #droppedResults = 0

  constructor(settings: StepSettings, events: StepEvents) {
    const { replica } = settings
    this.#metrics = settings.metrics
    this.#events = events
    this.handle = createEnvelopeHandler(this.#models, replica)
    this.control = {
      describe: () => Promise.resolve({ replica, models: this.served() }),
      statistics: (model, version) =>
        Promise.resolve(
          this.#served(model, version).flatMap(([, { serving }]) =>
            serving === undefined ? [] : [serving.statistics.snapshot()],
          ),
        ),
    }
  }

  add(model: HostedModel): void {
    this.#models.set(model.name, model)
    this.#sorted = [...this.#models.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
    for (const { version, serving } of model.versions.values()) {
      if (serving === undefined) continue
      this.#metrics?.addModel(serving.statistics, {
        name: model.name,
        version: String(version),
        tags: model.config?.metric_tags ?? {},
        loadSeconds: serving.loadSeconds,
      })
    }
    this.#changed()
  }

  served(): readonly ServedModel[] {
    return this.#sorted.map(toServedModel)
  }

  countDropped(): void {
    this.#droppedResults += 1
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  load(): StepLoad {
    const models = this.#served('', '').flatMap(([model, { version, serving }]) =>
      serving === undefined ? [] : [{ model, version, ...serving.scheduler.load }],
    )
    return {
      inFlight: models.reduce((sum, { inFlight }) => sum + inFlight, 0),
      freeSlots: models.reduce((sum, { freeSlots }) => sum + freeSlots, 0),
      isDraining: this.#isDraining,
      droppedResults: this.#droppedResults,
      models,
    }
  }

  async drain(): Promise<void> {
    if (!this.#isDraining) {
      this.#isDraining = true
      this.#events.draining(this.load().inFlight)
      this.#changed()
    }
    await Promise.all(
      this.#served('', '').flatMap(([, { serving }]) =>
        serving === undefined ? [] : [serving.scheduler.drain()],
      ),
    )
    this.#events.drained()
  }

  async close(): Promise<void> {
    this.#isDraining = true
    const served = this.#served('', '')
    for (const [, { serving }] of served) {
      if (serving === undefined) continue
      serving.scheduler.stop()
      this.#metrics?.removeModel(serving.statistics)
    }
    await Promise.all(served.map(([model, version]) => unloadVersion(model, version, this.#events)))
    this.#changed()
  }

  /** The versions that a model name and version select; '' selects all. */
  #served(name: string, version: string): (readonly [string, HostedVersion])[] {
    const found: (readonly [string, HostedVersion])[] = []
    for (const model of this.#sorted) {
      if (name !== '' && model.name !== name) continue
      for (const hosted of model.versions.values()) {
        if (version === '' || String(hosted.version) === version) found.push([model.name, hosted])
      }
    }
    return found
  }

  #changed(): void {
    for (const listener of this.#listeners) listener()
  }
}

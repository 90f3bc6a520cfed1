import type { Clock } from '@tutti/chassis'
import type { ServedModel, StepControl } from '@tutti/ensemble'
import type { FindExecutor, StepRequest } from '@tutti/tensor'
import type { ScheduledRequest } from './execution/execution.ts'
import { createFindExecutor } from './find-executor.ts'
import { type HostedVersion, toServedModel } from './hosted-model.ts'
import { ModelLoader } from './load/model-loader.ts'
import { StepEvents } from './log-events.ts'
import { createModelHost } from './model-host.ts'
import { ModelTable } from './model-table.ts'
import type { Step, StepLoad } from './step.ts'
import type { StepOptions, StepSettings } from './step-options.ts'

/** Opens a step without models; `models.load` loads them from the repository. */
export function openStep(o: StepOptions): Step {
  const engines = new Map([...o.engines.values()].map((engine) => [engine.backend, engine]))
  return new HostingStep({ ...o, engines })
}

/**
 * How long an engine may go on with work that nobody waits for, or with a load. Most cannot be interrupted, everybody has been
 * answered, and the process ends.
 */
const CLOSE_MS = 2000

/** The models of a process as a step: what they serve, say and count. */
class HostingStep implements Step {
  readonly executor: FindExecutor
  readonly control: StepControl
  readonly models: ModelLoader
  readonly #clock: Clock
  readonly #events: StepEvents
  readonly #table = new ModelTable()
  readonly #listeners = new Set<() => void>()
  #isDraining = false
  #isBusy = false
  #droppedResults = 0
  #closed: Promise<void> | undefined

  constructor(settings: StepSettings) {
    const { replica } = settings
    this.#clock = settings.clock
    this.#events = new StepEvents(settings.log)
    const host = createModelHost({
      replica,
      clock: settings.clock,
      routers: () => settings.routers?.(),
      control: () => settings.control?.(),
      findCaller: (request) => this.#findRunning(request),
    })
    this.models = new ModelLoader({
      table: this.#table,
      settings: { ...settings, host, dropped: () => this.#countDropped() },
      events: this.#events,
      changed: () => this.#changed(),
    })
    this.executor = createFindExecutor(this.#table, replica)
    this.control = {
      describe: () => Promise.resolve({ replica, models: this.served() }),
      statistics: (model, version) =>
        Promise.resolve(
          this.#served(model, version).flatMap(([, { serving }]) =>
            serving === undefined ? [] : [serving.statistics.snapshot()],
          ),
        ),
      isReady: async (model, version) => {
        const serving = this.#table.get(model)?.versions.get(version)?.serving
        return (await serving?.loaded.isReady?.()) ?? serving !== undefined
      },
    }
  }

  served(): readonly ServedModel[] {
    return this.#table.models.map(toServedModel)
  }

  /** The running request, of whichever model, that an engine was given as this object. */
  #findRunning(request: StepRequest): ScheduledRequest | undefined {
    for (const { scheduler } of this.#table.servings) {
      const found = scheduler.findRunning(request)
      if (found !== undefined) return found
    }
    return undefined
  }

  retired(): readonly (readonly [string, number, string])[] {
    return this.#table.retiredPins.map(({ model, version, revision }) => [model, version, revision])
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  load(): StepLoad {
    const models = this.#served('', '').flatMap(([model, { version, serving }]) =>
      serving === undefined
        ? []
        : [{ model, version, slots: serving.slots, ...serving.scheduler.load }],
    )
    return {
      // What is retired still works on what was accepted.
      inFlight: this.#table.servings.reduce(
        (sum, { scheduler }) => sum + scheduler.load.inFlight,
        0,
      ),
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
    await Promise.all(this.#table.servings.map(({ scheduler }) => scheduler.drain()))
    this.#events.drained()
  }

  get isBusy(): boolean {
    return this.#isBusy
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.#isDraining = true
    for (const { scheduler } of this.#table.servings) scheduler.stop()
    const closed = this.models.close()
    const late = Promise.withResolvers<void>()
    const stopTimer = this.#clock.setTimer(CLOSE_MS, () => {
      this.#events.closeGivenUp(CLOSE_MS)
      this.#isBusy = true
      late.resolve()
    })
    await Promise.race([closed, late.promise])
    stopTimer()
  }

  /** The versions that a model name and version select; '' selects all. */
  #served(name: string, version: string): (readonly [string, HostedVersion])[] {
    const found: (readonly [string, HostedVersion])[] = []
    for (const model of this.#table.models) {
      if (name !== '' && model.name !== name) continue
      for (const hosted of model.versions.values()) {
        if (version === '' || String(hosted.version) === version) found.push([model.name, hosted])
      }
    }
    return found
  }

  #countDropped(): void {
    this.#droppedResults += 1
  }

  #changed(): void {
    for (const listener of this.#listeners) listener()
  }
}

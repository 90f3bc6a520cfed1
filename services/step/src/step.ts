import type { PinnedVersion, ServedModel, StepControl } from '@tutti/api'
import { BUILTIN_HOST, BUILTIN_HOST_CONFIG } from '@tutti/builtins'
import { limitLog, ofEachModel } from '@tutti/chassis'
import type { ModelConfig } from '@tutti/model-config'
import type { MetricFamily } from '@tutti/telemetry'
import type { FindExecutor, ModelTarget, StepRequest } from '@tutti/tensor'
import { BuiltinSteps, SERVED_BUILTINS } from './builtin/builtin-steps.ts'
import { delayFamily } from './delay-family.ts'
import type { ScheduledRequest } from './execution/execution.ts'
import { createFindExecutor, type Scheduler } from './execution/scheduler.ts'
import type { PartExecutor } from './execution/scheduler-parts.ts'
import { type HostedVersion, type Serving, toServedModel } from './load/hosted-model.ts'
import { ModelLoader } from './load/model-loader.ts'
import { ModelTable } from './load/model-table.ts'
import { StepEvents } from './log-events.ts'
import { createModelHost } from './model-host.ts'
import type { StepOptions, StepSettings } from './step-options.ts'

/** Load of a step process, by which routers choose between replicas. */
export interface ProcessLoad {
  /** Accepted and not yet answered, in requests. */
  readonly inFlight: number
  /** Number of instances that execute nothing. */
  readonly freeSlots: number
  readonly models: readonly ModelLoad[]
}

/** How busy one model version is. */
interface ModelLoad extends Pick<Serving, 'slots'> {
  readonly model: string
  readonly version: number
  /** Accepted and not yet answered, in requests. */
  readonly inFlight: number
  /** Requests of these that wait for an instance. */
  readonly queued: number
  /** Instances that execute nothing; an abandoned call keeps its instance. */
  readonly freeSlots: number
  /** Requests since the version was loaded. */
  readonly requests: number
}

/**
 * How long an engine may go on with work whose callers are answered, or with a load. Most cannot be interrupted, and the process
 * ends.
 */
const CLOSE_MS = 2000

/** Opens a step without models; `models.load` loads them from the repository. */
export function openStep(o: StepOptions): Step {
  const { engines: given } = o
  const engines = 'get' in given ? given : new Map(given.map((each) => [each.backend, each]))
  return new Step({ ...o, engines })
}

/** Models of a process. It executes requests to them, describes them and counts their work. */
export class Step {
  /** Finds the executor of a model version. The executor ends each request with a final response or a failure. */
  readonly executor: FindExecutor
  readonly control: Required<StepControl>
  readonly models: ModelLoader
  readonly #settings: StepSettings
  readonly #events: StepEvents
  readonly #table: ModelTable
  readonly #builtins: BuiltinSteps
  readonly #parts: PartExecutor | undefined
  readonly #listeners = new Set<() => void>()
  #isBusy = false
  #closed: Promise<void> | undefined

  /** Name of this process among all replicas. */
  readonly replica: string

  constructor(given: StepSettings) {
    const { replica, clock } = given
    // Clients load models, and have engines fail.
    this.replica = replica
    const settings = { ...given, log: limitLog(given.log, { clock }, ofEachModel) }
    this.#settings = settings
    this.#events = new StepEvents(settings.log)
    const changed = (): void => {
      this.#builtins.sweep()
      for (const listener of this.#listeners) listener()
    }
    this.#table = new ModelTable({ ...settings, events: this.#events, changed })
    this.#builtins = new BuiltinSteps({
      settings,
      areOffered: settings.builtins === true,
      findPinned: (target) => this.#table.findPinned(target),
    })
    const { autoDelays, metrics } = settings
    if (autoDelays !== undefined && autoDelays.size > 0) {
      metrics?.addFamilies(() => [delayFamily(this.#select('', ''))])
    }
    const host = createModelHost({
      replica,
      clock,
      routers: () => settings.routers?.(),
      control: () => settings.control?.(),
      findCaller: (request) => this.#findRunning(request),
    })
    this.models = new ModelLoader({
      table: this.#table,
      settings: { ...settings, host, lost: (pin, problem) => this.#lose(pin, problem) },
      events: this.#events,
    })
    metrics?.addFamilies(() => [loadFailures(this.models)])
    const builtins = this.#builtins
    const parts = settings.openParts?.({
      executor: createFindExecutor(this.#table, replica, { builtins, parts: undefined }),
      configOf: (pin) => this.#configOf(pin),
    })
    this.#parts = parts
    this.executor = createFindExecutor(this.#table, replica, { builtins, parts })
    this.control = {
      describe: async () => ({ replica, models: this.served() }),
      statistics: async (model, version) =>
        this.#select(model, version).flatMap(
          ([, { serving }]) => serving?.statistics.snapshot() ?? [],
        ),
      isReady: async (model, version) => {
        if (model === BUILTIN_HOST) return this.#builtins.areOffered
        const serving = this.#table.byName.get(model)?.versions.get(version)?.serving
        return (await serving?.loaded.isReady?.()) ?? serving !== undefined
      },
    }
  }

  /** True if requests for parts of graphs are taken. */
  get runsParts(): boolean {
    return this.#parts !== undefined
  }

  #lose(pin: PinnedVersion, problem: string): void {
    this.#table.lose(pin, problem)
    this.#settings.modelLost?.(`model '${pin.model}' version ${pin.version}: ${problem}`)
  }

  #configOf(pin: ModelTarget): ModelConfig {
    if (pin.model === BUILTIN_HOST && this.#builtins.areOffered) return BUILTIN_HOST_CONFIG
    return this.#table.findPinned(pin).scheduler.context.config
  }

  /** Lists the models by name, as `describe` returns them. */
  served(): readonly ServedModel[] {
    const models = this.#table.models.map(toServedModel)
    return this.#builtins.areOffered ? [SERVED_BUILTINS, ...models] : models
  }

  /** Lists [model, version, revision] of replaced or unloaded versions that still execute requests which pinned them. */
  retired(): readonly (readonly [string, number, string])[] {
    return this.#table.retiredPins
  }

  /** Calls `listener` when the answer to `describe` has changed. @returns a function that removes the listener. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  load(): ProcessLoad {
    const models = this.#select('', '').flatMap(([model, { version, serving }]) =>
      serving === undefined
        ? []
        : [{ model, version, slots: serving.slots, ...loadOf(serving.scheduler) }],
    )
    const builtins = this.#builtins.loaded.map(
      ({ target: { model, version }, slots, scheduler }) => {
        return { model, version, slots, ...loadOf(scheduler) }
      },
    )
    const all = [...models, ...builtins]
    return { inFlight: this.#inFlight, freeSlots: sum(all.map((m) => m.freeSlots)), models: all }
  }

  /** Stops taking new requests, and resolves when all accepted ones are answered. */
  async drain(): Promise<void> {
    this.#events.draining(this.#inFlight)
    // Their steps are requests to the models.
    if (this.#parts !== undefined) await this.#parts.drain()
    const models = this.#table.servings.map(({ scheduler }) => scheduler.drain())
    await Promise.all([...models, this.#builtins.drain()])
    this.#events.drained()
  }

  /** True after `close` if an engine still executes work that cannot be interrupted. */
  get isBusy(): boolean {
    return this.#isBusy
  }

  /** Fails waiting requests with SERVER_STOPPING and running ones with ENGINE_STOPPED, and releases the engines. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    for (const { scheduler } of this.#table.servings) scheduler.stop()
    const closed = Promise.all([this.models.close(), this.#builtins.close()])
    const late = Promise.withResolvers<void>()
    const stopTimer = this.#settings.clock.setTimer(CLOSE_MS, () => {
      this.#events.closeGivenUp(CLOSE_MS)
      this.#isBusy = true
      late.resolve()
    })
    await Promise.race([closed, late.promise])
    stopTimer()
  }

  /** Requests in flight: retired versions still work on what they accepted. */
  get #inFlight(): number {
    const all = [...this.#table.servings, ...this.#builtins.loaded]
    return sum(all.map(({ scheduler }) => scheduler.load.inFlight))
  }

  /** Finds the running request, of any model, that an engine was given as this object. */
  #findRunning(request: StepRequest): ScheduledRequest | undefined {
    for (const { scheduler } of this.#table.servings) {
      const found = scheduler.findRunning(request)
      if (found !== undefined) return found
    }
    return undefined
  }

  /** Lists the versions that a model name and version select; '' selects all. */
  #select(name: string, version: string): (readonly [string, HostedVersion])[] {
    return this.#table.models
      .filter((model) => name === '' || model.name === name)
      .flatMap((model) => [...model.versions.values()].map((v) => [model.name, v] as const))
      .filter(([, hosted]) => version === '' || String(hosted.version) === version)
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0)
}

function loadFailures({ failures }: ModelLoader): MetricFamily {
  return {
    name: 'tutti_model_load_failures_total',
    help: 'Loads of models that failed, without those with overrides of a client',
    type: 'counter',
    series: [{ labels: [], value: failures }],
  }
}

function loadOf({ load, requests }: Pick<Scheduler, 'load' | 'requests'>) {
  return { ...load, requests }
}

import { ServeError } from '@tutti/errors'
import type { LoadOverrides, OpenedModel } from '@tutti/repository'
import { loadOvertaken, pollFailed } from '@tutti/serving'
import type { StepEvents } from '../log-events.ts'
import { type HostedModel, isServed } from './hosted-model.ts'
import { Limit } from './limit.ts'
import { limitLoad } from './load-limit.ts'
import { type LoadOutcome, loadModel, refusedModel, unloadVersion } from './load-model.ts'
import { LoadProgress, type LoadState, type ShownLoad } from './load-progress.ts'
import type { VersionLoadOptions } from './load-version.ts'
import type { ModelTable } from './model-table.ts'

export interface LoaderDependencies {
  readonly table: ModelTable
  readonly settings: VersionLoadOptions
  readonly events: StepEvents
}

/** The loads of one model, one after the other. */
class LoadQueue {
  /** Ends when the loads so far are over. */
  last: Promise<unknown> = Promise.resolve()
  /** Controllers of the loads that are not over. An unload overtakes the loads that were requested before it, and aborts them. */
  readonly open = new Set<AbortController>()
}

interface RequestedLoad {
  readonly overrides: LoadOverrides | undefined
  readonly load: ShownLoad
  readonly signal: AbortSignal
}

/**
 * Loads and unloads the models of a process. The loads of one model are worked on in the order in which they came, as in Triton;
 * an unload overtakes them. What is served stays until what takes its place is READY.
 */
export class ModelLoader {
  readonly #dependencies: LoaderDependencies
  readonly #limit: Limit
  readonly #progress: LoadProgress
  readonly #queues = new Map<string, LoadQueue>()
  #isClosed = false
  #failures = 0

  constructor(o: LoaderDependencies) {
    this.#dependencies = o
    this.#limit = new Limit(o.settings.loadParallelism)
    this.#progress = new LoadProgress(o.settings.clock, o.events)
  }

  /**
   * Number of loads of the repository's models that have failed. A load with overrides is not counted: its client may be at
   * fault.
   */
  get failures(): number {
    return this.#failures
  }

  /** Loads that are not over, and what each waits for. */
  loads(): readonly LoadState[] {
    return this.#progress.loads()
  }

  /**
   * Loads a model as it is on disk, or as the overrides say. Resolves when all its versions are READY, at once if nothing
   * changed since the load before, whose configuration stays then.
   *
   * @throws ServeError with the texts of triton-semantics 3.3: MODEL_POLL_FAILED, MODEL_LOAD_FAILED, MODEL_LOAD_OVERTAKEN.
   */
  load(name: string, overrides?: LoadOverrides): Promise<void> {
    const queue = this.#queues.get(name) ?? new LoadQueue()
    this.#queues.set(name, queue)
    const abort = new AbortController()
    queue.open.add(abort)
    if (this.#isClosed) abort.abort()
    const load = this.#progress.open(name)
    const done = queue.last.then(() => this.#load(name, { overrides, load, signal: abort.signal }))
    // Names come from outside: an empty queue is not kept.
    const leave = (): void => {
      load.end()
      queue.open.delete(abort)
      if (queue.open.size === 0) this.#queues.delete(name)
    }
    queue.last = done.then(leave, leave)
    return done
  }

  /** Takes a model out of service; requests that it has accepted are finished in the background. Unknown names are no error. */
  unload(name: string): void {
    this.#overtake(name)
    this.#dependencies.table.unload(name)
  }

  /** Loads nothing more and closes everything in memory. The schedulers must have been stopped. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const name of this.#queues.keys()) this.#overtake(name)
    await Promise.all([...this.#queues.values()].map(({ last }) => last))
    await this.#dependencies.table.close()
  }

  #overtake(name: string): void {
    for (const abort of this.#queues.get(name)?.open ?? []) abort.abort(loadOvertaken(name))
  }

  async #load(name: string, { overrides, load, signal }: RequestedLoad): Promise<void> {
    if (signal.aborted) throw loadOvertaken(name)
    const opened = await this.#take(name, overrides)
    const served = this.#dependencies.table.byName.get(name)
    // As in Triton, a configuration that came with a load stays in force over plain loads of the same files.
    const wanted = overrides === undefined ? served?.filesDigest : served?.digest
    if (isServed(served) && wanted === opened.digest) {
      this.#dependencies.table.listFailed(name, new Map())
      await opened.release()
      return
    }
    const loading = (model: HostedModel): void => {
      if (!signal.aborted && !isServed(this.#dependencies.table.byName.get(name)))
        this.#dependencies.table.put(model)
    }
    const outcome = await this.#limit.run(async () => {
      // It may have waited for other models.
      if (signal.aborted) return undefined
      load.begin()
      const { report } = load
      const limit = limitLoad({ ...this.#dependencies.settings, name, signal })
      const o = { ...this.#dependencies, loading, report, signal: limit.signal }
      return loadModel(opened, o).finally(limit.end)
    })
    if (signal.aborted) await this.#drop(opened, outcome)
    else if (outcome === undefined) await this.#refuseEnsemble(opened)
    else await this.#settle(outcome, overrides)
  }

  async #take(name: string, overrides: LoadOverrides | undefined): Promise<OpenedModel> {
    const { repository } = this.#dependencies.settings
    try {
      if (repository === undefined) {
        throw new ServeError('MODEL_NOT_FOUND', 'there is no repository')
      }
      return await repository.take(name, overrides)
    } catch (thrown) {
      const error = ServeError.from(thrown)
      if (error.reason === 'REPOSITORY_UNREADABLE') this.#countFailure(overrides)
      // There is such a model, but nothing of it can be used: the index says why.
      if (
        error.reason === 'REPOSITORY_UNREADABLE' &&
        !isServed(this.#dependencies.table.byName.get(name))
      ) {
        this.#dependencies.events.modelRefused(name, error.message)
        this.#dependencies.table.put(refusedModel(name, error.message, async () => {}))
      }
      throw pollFailed(name, error)
    }
  }

  async #settle({ model, error }: LoadOutcome, overrides?: LoadOverrides): Promise<void> {
    const { table } = this.#dependencies
    const before = table.byName.get(model.name)
    // A configuration that came with a load and is refused says nothing of versions that could not be loaded.
    const isNothing = overrides !== undefined && model.versions.size === 0
    const stays = isServed(before) || (isNothing && before !== undefined)
    // The model that is served stays if the one that should take its place cannot be served.
    if (error === undefined || !stays) table.put(model)
    else if (model.versions.size > 0) table.listFailed(model.name, model.versions)
    if (error === undefined) return
    this.#countFailure(overrides)
    await model.release()
    throw error
  }

  #countFailure(overrides: LoadOverrides | undefined): void {
    if (overrides === undefined) this.#failures += 1
  }

  async #refuseEnsemble({ model, release }: OpenedModel): Promise<never> {
    await release()
    const cause = new ServeError('UNSUPPORTED', 'it is an ensemble, which a router serves')
    throw pollFailed(model.name, cause)
  }

  /** Drops a loaded model whose load an unload has overtaken. */
  async #drop({ model, release }: OpenedModel, outcome: LoadOutcome | undefined): Promise<never> {
    for (const version of outcome?.model.versions.values() ?? []) {
      await unloadVersion(model.name, version, this.#dependencies.events)
    }
    await release()
    throw loadOvertaken(model.name)
  }
}

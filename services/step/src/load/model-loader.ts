import { ServeError } from '@tutti/errors'
import type { LoadOverrides, OpenedModel } from '@tutti/repository'
import { loadOvertaken, pollFailed } from '@tutti/server'
import { type HostedModel, isServed } from '../hosted-model.ts'
import type { StepEvents } from '../log-events.ts'
import { ModelChanges } from '../model-changes.ts'
import type { ModelTable } from '../model-table.ts'
import { Limit } from './limit.ts'
import { type LoadOutcome, loadModel, unloadVersion } from './load-model.ts'
import type { LoadContext, VersionLoadOptions } from './load-version.ts'

export interface ModelLoaderOptions {
  readonly table: ModelTable
  readonly settings: VersionLoadOptions
  readonly events: StepEvents
  /** What the table says has changed. */
  changed(): void
}

/** The loads of one model, one after the other. */
interface Line {
  /** Ends when those that came are over. */
  last: Promise<unknown>
  /** Counts unloads up: a load that was asked for before one is overtaken by it. */
  unloads: number
  open: number
  /** Of the load that is worked on. */
  abort: AbortController
}

function newLine(): Line {
  return { last: Promise.resolve(), unloads: 0, open: 0, abort: new AbortController() }
}

/** What is known of a model that could not be read. */
const NOTHING = { labels: {}, versions: new Map(), digest: '', release: async () => {} }

/**
 * Loads and unloads the models of a process. The loads of one model are worked on in the order in which they came, as in Triton;
 * an unload overtakes them. What is served stays until what takes its place is READY.
 */
export class ModelLoader {
  readonly #o: ModelLoaderOptions
  readonly #changes: ModelChanges
  readonly #limit: Limit
  readonly #lines = new Map<string, Line>()
  #isClosed = false

  constructor(o: ModelLoaderOptions) {
    this.#o = o
    this.#changes = new ModelChanges({ ...o.settings, ...o })
    this.#limit = new Limit(o.settings.loadParallelism)
  }

  /**
   * Loads a model as it is on disk, or as the overrides say. Resolves when all its versions are READY, at once if nothing
   * changed.
   *
   * @throws ServeError with the texts of triton-semantics 3.3: MODEL_POLL_FAILED, MODEL_LOAD_FAILED, MODEL_LOAD_OVERTAKEN.
   */
  load(name: string, overrides?: LoadOverrides): Promise<void> {
    const line = this.#lines.get(name) ?? newLine()
    this.#lines.set(name, line)
    line.open += 1
    const { unloads } = line
    const isOvertaken = (): boolean => line.unloads > unloads || this.#isClosed
    const done = line.last.then(() => {
      line.abort = new AbortController()
      return this.#turn(name, overrides, { isOvertaken, signal: line.abort.signal })
    })
    // Names come from outside: a line that nobody uses is not kept.
    const leave = (): void => {
      line.open -= 1
      if (line.open === 0) this.#lines.delete(name)
    }
    line.last = done.then(leave, leave)
    return done
  }

  /** Takes a model out of service; what it has accepted is finished in the background. Unknown names are no error. */
  unload(name: string): void {
    const line = this.#lines.get(name)
    if (line !== undefined) {
      line.unloads += 1
      line.abort.abort(loadOvertaken(name))
    }
    this.#changes.unload(name)
  }

  /** Loads nothing more and closes everything in memory. The schedulers must have been stopped. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const [name, { abort }] of this.#lines) abort.abort(loadOvertaken(name))
    await Promise.all([...this.#lines.values()].map(({ last }) => last))
    await this.#changes.close()
  }

  async #turn(
    name: string,
    overrides: LoadOverrides | undefined,
    { isOvertaken, signal }: { readonly isOvertaken: () => boolean } & LoadContext,
  ): Promise<void> {
    if (isOvertaken()) throw loadOvertaken(name)
    const opened = await this.#take(name, overrides)
    if (this.#o.table.get(name)?.digest === opened.digest) {
      await opened.release()
      return
    }
    const loading = (model: HostedModel): void => {
      if (!isOvertaken() && !isServed(this.#o.table.get(name))) this.#changes.put(model)
    }
    const outcome = await this.#limit.run(async () => {
      // It may have waited for its turn among the models.
      if (isOvertaken()) return undefined
      return loadModel(opened, { ...this.#o, loading, signal })
    })
    if (isOvertaken()) await this.#drop(opened, outcome)
    else if (outcome === undefined) await this.#refuseEnsemble(opened)
    else await this.#settle(outcome)
  }

  async #take(name: string, overrides: LoadOverrides | undefined): Promise<OpenedModel> {
    const { repository } = this.#o.settings
    try {
      if (repository === undefined) {
        throw new ServeError('MODEL_NOT_FOUND', 'there is no repository')
      }
      return await repository.take(name, overrides)
    } catch (thrown) {
      const error = ServeError.from(thrown)
      // There is such a model, but nothing of it can be used: the index says why.
      if (error.reason === 'REPOSITORY_UNREADABLE' && !isServed(this.#o.table.get(name))) {
        this.#o.events.modelRefused(name, error.message)
        this.#changes.put({ ...NOTHING, name, reason: error.message })
      }
      throw pollFailed(name, error)
    }
  }

  async #settle({ model, error }: LoadOutcome): Promise<void> {
    const { table } = this.#o
    // What is served stays so if what should take its place cannot be.
    if (error === undefined || !isServed(table.get(model.name))) this.#changes.put(model)
    if (error === undefined) return
    await model.release()
    throw error
  }

  async #refuseEnsemble({ model, release }: OpenedModel): Promise<never> {
    await release()
    const what = new ServeError('UNSUPPORTED', 'it is an ensemble, which a router serves')
    throw pollFailed(model.name, what)
  }

  /** Nobody wants what was loaded any more. */
  async #drop({ model, release }: OpenedModel, outcome: LoadOutcome | undefined): Promise<never> {
    for (const version of outcome?.model.versions.values() ?? []) {
      await unloadVersion(model.name, version, this.#o.events)
    }
    await release()
    throw loadOvertaken(model.name)
  }
}

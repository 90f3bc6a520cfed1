import { ServeError } from '@tutti/errors'
import {
  type ExecuteOptions,
  type Executor,
  executedBefore,
  type FindExecutor,
  type InferRequest,
  type ModelTarget,
  type ResponseSink,
} from '@tutti/tensor'
import type { ModelTable } from './model-table.ts'

type Table = Pick<ModelTable, 'byName' | 'getPinned'>

/** Makes the entry of a step: the executor of a model version finds it for each request, so that it may be replaced meanwhile. */
export function createFindExecutor(table: Table, replica: string): FindExecutor {
  return (target) => new VersionExecutor(table, replica, target)
}

/** A model version in this process: checks a request and hands it to the version's scheduler. */
class VersionExecutor implements Executor {
  readonly #table: Table
  readonly #replica: string
  readonly #target: ModelTarget

  constructor(table: Table, replica: string, target: ModelTarget) {
    this.#table = table
    this.#replica = replica
    this.#target = target
  }

  execute(request: InferRequest, sink: ResponseSink, o: ExecuteOptions): void {
    const { model, version, revision } = this.#target
    try {
      const current = this.#table.byName.get(model)?.versions.get(version)
      const serving = current?.revision === revision ? current.serving : undefined
      const { check, scheduler } = serving ?? this.#table.getPinned(this.#target)
      scheduler.execute(check(request), sink, o)
    } catch (error) {
      const failure = ServeError.from(error)
      const details = { model, version: String(version), replica: this.#replica }
      sink.fail(failure.withDetails(details), executedBefore(failure))
    }
  }
}

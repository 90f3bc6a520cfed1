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
import type { Serving } from './hosted-model.ts'
import type { ModelTable } from './model-table.ts'

type Table = Pick<ModelTable, 'get' | 'retired'>

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
    try {
      const { check, scheduler } = findServing(this.#table, this.#target)
      scheduler.execute(check(request), sink, o)
    } catch (error) {
      const { model, version } = this.#target
      const details = { model, version: String(version), replica: this.#replica }
      const failure = ServeError.from(error)
      sink.fail(failure.withDetails(details), executedBefore(failure))
    }
  }
}

/** The current revision, or one that this request pinned before it was replaced or unloaded. */
function findServing(table: Table, target: ModelTarget): Serving {
  const version = table.get(target.model)?.versions.get(target.version)
  if (version?.serving !== undefined && version.revision === target.revision) {
    return version.serving
  }
  return table.retired(target) ?? refuseVersion(table, target)
}

function refuseVersion(table: Table, target: ModelTarget): never {
  const { model: name, version: number } = target
  const unknown = `Request for unknown model: '${name}'`
  const model = table.get(name)
  if (model === undefined) throw new ServeError('MODEL_NOT_FOUND', `${unknown} is not found`)
  const version = model.versions.get(number)
  if (version === undefined) {
    throw new ServeError('MODEL_NOT_FOUND', `${unknown} version ${number} is not found`)
  }
  if (version.serving === undefined) {
    throw new ServeError('MODEL_NOT_READY', `${unknown} version ${number} is not at ready state`)
  }
  throw new ServeError(
    'REVISION_GONE',
    `model '${name}' version ${number}: revision ${target.revision} is pinned, ${version.revision} is served`,
  )
}

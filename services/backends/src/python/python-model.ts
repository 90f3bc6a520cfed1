import { ServeError } from '@tutti/errors'
import type { BatchOptions, EngineRequest, ExecutionTimes, LoadedModel } from '../engine.ts'
import type { PythonInstance } from './python-instance.ts'

/** Python model, whose instances each have a process or share one. */
export class PythonModel implements LoadedModel {
  readonly isReady: (() => Promise<boolean>) | undefined
  readonly #instances: readonly PythonInstance[]
  readonly #closed: () => void

  /** Makes a model of instances that have started. @param closed - called when all processes are gone. */
  constructor(instances: readonly PythonInstance[], closed: () => void) {
    this.#instances = instances
    this.#closed = closed
    const reporting = instances.filter(({ reportsReadiness }) => reportsReadiness)
    if (reporting.length > 0) this.isReady = () => areAllReady(reporting)
  }

  execute(batch: readonly EngineRequest[], o: BatchOptions): Promise<ExecutionTimes> {
    const instance = this.#instances[o.instance]
    if (instance === undefined) {
      throw new ServeError('INTERNAL', `bug: instance ${o.instance} of ${this.#instances.length}`)
    }
    return instance.execute(batch, o)
  }

  async replace(instance: number, problem: string): Promise<void> {
    await this.#instances[instance]?.replace(problem)
  }

  async close(): Promise<void> {
    await Promise.all(this.#instances.map((instance) => instance.close()))
    this.#closed()
  }
}

/** Tells whether all instances are ready: a request may come to any of them. */
async function areAllReady(instances: readonly PythonInstance[]): Promise<boolean> {
  const said = await Promise.all(instances.map((instance) => instance.isReady()))
  return said.every((isReady) => isReady)
}

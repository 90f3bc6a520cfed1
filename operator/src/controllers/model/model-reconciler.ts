import type { ReconcileContext, Result } from '../../runtime/controller.ts'
import { untilOwnerMoves } from '../../runtime/owner-check.ts'
import { ModelPass, type ModelPassOptions } from './model-pass.ts'

/** Makes a Model come true, one look at a time: read, judge, apply, ask, accept, and one status. */
export class ModelReconciler {
  readonly #o: ModelPassOptions

  constructor(o: ModelPassOptions) {
    this.#o = o
  }

  async reconcile({ signal, aside }: ReconcileContext, key: string): Promise<Result> {
    const { reader, applier, statuses, scaler } = this.#o
    const model = reader.model(key)
    if (model === undefined) {
      applier.forget(key)
      statuses.forget(key)
      scaler.forget(key)
      return {}
    }
    // Its children go with it, by their owner references.
    if (model.metadata.deletionTimestamp !== undefined) return {}
    return await untilOwnerMoves(() => new ModelPass(this.#o, { model, key, signal, aside }).run())
  }
}

import type { EnsemblePlan } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'

/**
 * Counts the requests that this router executes for each ensemble and refuses those beyond its `maxInFlightRequests`. Requests
 * of models and of other ensembles count like a client's. Counted by name, so that the count goes on when the plan changes.
 */
export class EnsembleAdmission {
  readonly #counts = new Map<string, number>()

  /**
   * @returns ends the request; only its first call counts.
   * @throws ServeError OVERLOADED if the ensemble's bound is reached.
   */
  enter({ name, maxInFlightRequests: bound }: EnsemblePlan): () => void {
    const count = this.#counts.get(name) ?? 0
    if (bound !== undefined && count >= bound) {
      const text = `ensemble '${name}' is overloaded: ${count} requests are in flight, the bound is ${bound}`
      throw new ServeError('OVERLOADED', text, { details: { ensemble: name } })
    }
    this.#counts.set(name, count + 1)
    let isIn = true
    return () => {
      if (isIn) this.#leave(name)
      isIn = false
    }
  }

  #leave(name: string): void {
    const left = (this.#counts.get(name) ?? 0) - 1
    if (left > 0) this.#counts.set(name, left)
    else this.#counts.delete(name)
  }
}

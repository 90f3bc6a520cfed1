import type { PodLoad } from './decide-replicas.ts'

/** A Model as it is looked at. */
export interface SeenModel {
  readonly key: string
  readonly uid: string
  readonly pods: readonly { readonly name: string }[]
}

interface Seen {
  /** The Model, its pods and the requests that each had, as one text. */
  readonly text: string
  /** Time of the last sign of use, in milliseconds of the monotonic clock. */
  readonly usedAt: number
}

/**
 * Tells for how long Models had no request, by the counts of their pods. A request between two looks is seen as well as one that is
 * in flight. Whatever is not known counts as use: a pod that does not answer, or that came or went, and all from before the first look.
 */
export class Idleness {
  readonly #seen = new Map<string, Seen>()

  /**
   * Takes note of a look.
   *
   * @param loads - of the pods, in their order; undefined for one that did not answer.
   * @returns milliseconds since the last sign of use.
   */
  look(model: SeenModel, loads: readonly (PodLoad | undefined)[], now: number): number {
    const { key, uid, pods } = model
    const isKnown = loads.length > 0 && loads.every((load) => load?.requests !== undefined)
    const isBusy = loads.some((load) => load !== undefined && load.inFlight + load.queued > 0)
    const counts = loads.map((load, i) => `${pods[i]?.name} ${load?.requests}`).toSorted()
    const text = JSON.stringify([uid, ...counts])
    const known = this.#seen.get(key)
    if (!isKnown || isBusy || known?.text !== text) this.#seen.set(key, { text, usedAt: now })
    return now - (this.#seen.get(key)?.usedAt ?? now)
  }

  forget(key: string): void {
    this.#seen.delete(key)
  }
}

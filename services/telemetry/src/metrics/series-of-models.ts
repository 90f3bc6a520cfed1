import type { MetricSeries } from '../metrics-text.ts'

type Labels = MetricSeries['labels']

/** Values of metrics by their labels. Versions of a model share labels, and so one value, until the last version is removed. */
export class SeriesOfModels<T> {
  readonly #known = new Map<string, { readonly value: T; users: number }>()

  /** @param make - a value for labels that have none. */
  add(labels: Labels, make: () => T): T {
    const key = JSON.stringify(labels)
    const known = this.#known.get(key) ?? { value: make(), users: 0 }
    known.users += 1
    this.#known.set(key, known)
    return known.value
  }

  find(labels: Labels): T | undefined {
    return this.#known.get(JSON.stringify(labels))?.value
  }

  /** Takes back one `add`. */
  remove(labels: Labels): void {
    const key = JSON.stringify(labels)
    const known = this.#known.get(key)
    if (known === undefined) return
    known.users -= 1
    if (known.users === 0) this.#known.delete(key)
  }

  get values(): readonly T[] {
    return [...this.#known.values()].map(({ value }) => value)
  }
}

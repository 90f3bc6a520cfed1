import type { KubeObject, Stored } from '@tutti/kube'

/** Finds objects by values that a function gives for each. */
export class ObjectIndex<T extends KubeObject> {
  readonly #valuesOf: (object: Stored<T>) => readonly string[]
  /** By value, then by key. */
  readonly #found = new Map<string, Map<string, Stored<T>>>()
  readonly #values = new Map<string, readonly string[]>()

  constructor(valuesOf: (object: Stored<T>) => readonly string[]) {
    this.#valuesOf = valuesOf
  }

  set(key: string, object: Stored<T>): void {
    this.remove(key)
    const values = this.#valuesOf(object)
    if (values.length === 0) return
    this.#values.set(key, values)
    for (const value of values) {
      const found = this.#found.get(value) ?? new Map<string, Stored<T>>()
      found.set(key, object)
      this.#found.set(value, found)
    }
  }

  remove(key: string): void {
    for (const value of this.#values.get(key) ?? []) {
      const found = this.#found.get(value)
      found?.delete(key)
      if (found?.size === 0) this.#found.delete(value)
    }
    this.#values.delete(key)
  }

  /** Every value under which something is found. */
  values(): readonly string[] {
    return [...this.#found.keys()]
  }

  get(value: string): readonly Stored<T>[] {
    return [...(this.#found.get(value)?.values() ?? [])]
  }
}

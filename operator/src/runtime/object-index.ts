import type { KubeObject, Stored } from '@tutti/kube'

/**
 * Finds objects by values that a function gives for each. An index has an entry for each of tens of thousands of objects, and
 * most values are of one object alone: only the others have a set.
 */
export class ObjectIndex<T extends KubeObject> {
  readonly #valuesOf: (object: Stored<T>) => readonly string[]
  readonly #found = new Map<string, Stored<T> | Set<Stored<T>>>()

  constructor(valuesOf: (object: Stored<T>) => readonly string[]) {
    this.#valuesOf = valuesOf
  }

  add(object: Stored<T>): void {
    for (const value of this.#valuesOf(object)) {
      const found = this.#found.get(value)
      if (found === undefined) this.#found.set(value, object)
      else if (found instanceof Set) found.add(object)
      else if (found !== object) this.#found.set(value, new Set([found, object]))
    }
  }

  /** @param object - the very one that was added. */
  remove(object: Stored<T>): void {
    for (const value of this.#valuesOf(object)) {
      const found = this.#found.get(value)
      if (found instanceof Set) found.delete(object)
      if (found === object || (found instanceof Set && found.size === 0)) this.#found.delete(value)
    }
  }

  /** Every value under which something is found. */
  values(): readonly string[] {
    return [...this.#found.keys()]
  }

  get(value: string): readonly Stored<T>[] {
    const found = this.#found.get(value)
    if (found === undefined) return []
    return found instanceof Set ? [...found] : [found]
  }
}

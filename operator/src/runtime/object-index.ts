import type { KubeObject, Stored } from '@tutti/kube'

/**
 * An index that finds objects by values, which a function computes for each object. Most values belong to one object alone, so
 * only a value with several objects has a set. This saves memory with tens of thousands of objects.
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

  /** Removes an object. @param object - the same instance that was added. */
  remove(object: Stored<T>): void {
    for (const value of this.#valuesOf(object)) {
      const found = this.#found.get(value)
      if (found instanceof Set) found.delete(object)
      if (found === object || (found instanceof Set && found.size === 0)) this.#found.delete(value)
    }
  }

  /** Returns every value that has at least one object. */
  values(): readonly string[] {
    return [...this.#found.keys()]
  }

  get(value: string): readonly Stored<T>[] {
    const found = this.#found.get(value)
    if (found === undefined) return []
    return found instanceof Set ? [...found] : [found]
  }
}

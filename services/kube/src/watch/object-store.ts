import { type KubeObject, keyOf, type Stored, toKeyString } from '../object.ts'
import type { ReflectorEvent } from './reflector.ts'

/** A copy of a resource's objects. Each change returns the events that describe the change. */
export interface ObjectStore<T extends KubeObject> {
  readonly objects: ReadonlyMap<string, Stored<T>>
  /** Stores a new or changed object. */
  set(object: Stored<T>): readonly ReflectorEvent<T>[]
  /** Removes an object, unless the store has another object of its name. */
  remove(object: Stored<T>): readonly ReflectorEvent<T>[]
  /** Replaces all stored objects by a complete state. @param isInitial - whether added objects count as initial. */
  replace(next: ReadonlyMap<string, Stored<T>>, isInitial: boolean): readonly ReflectorEvent<T>[]
}

/** Makes an empty store. An object whose uid changed under its name is a deletion and an addition. */
export function createObjectStore<T extends KubeObject>(): ObjectStore<T> {
  const objects = new Map<string, Stored<T>>()
  return {
    objects,
    set: (object) => {
      const key = keyStringOf(object)
      const old = objects.get(key)
      objects.set(key, object)
      return compare(key, old, object, false)
    },
    remove: (object) => {
      const key = keyStringOf(object)
      const old = objects.get(key)
      if (old?.metadata.uid !== object.metadata.uid) return []
      objects.delete(key)
      return [{ type: 'deleted', key, object, old }]
    },
    replace: (next, isInitial) => {
      const before = new Map(objects)
      objects.clear()
      for (const [key, object] of next) objects.set(key, object)
      const events: ReflectorEvent<T>[] = []
      for (const [key, old] of before) {
        if (!next.has(key)) events.push({ type: 'deleted', key, object: old, old })
      }
      for (const [key, object] of next) {
        events.push(...compare(key, before.get(key), object, isInitial))
      }
      return events
    },
  }
}

/** Formats the key of an object: `namespace/name`, or the name alone. */
export function keyStringOf(object: KubeObject): string {
  return toKeyString(keyOf(object))
}

function compare<T extends KubeObject>(
  key: string,
  old: Stored<T> | undefined,
  object: Stored<T>,
  isInitial: boolean,
): readonly ReflectorEvent<T>[] {
  if (old === undefined) return [{ type: 'added', key, object, isInitial }]
  if (old.metadata.uid !== object.metadata.uid) {
    return [
      { type: 'deleted', key, object: old, old },
      { type: 'added', key, object, isInitial: false },
    ]
  }
  if (old.metadata.resourceVersion === object.metadata.resourceVersion) return []
  return [{ type: 'updated', key, object, old }]
}

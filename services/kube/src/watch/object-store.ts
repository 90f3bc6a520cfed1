import { type KubeObject, keyOf, type Stored, toKeyString } from '../object.ts'
import type { ReflectorEvent } from './reflector.ts'

/** A copy of a resource's objects; every change gives the events that tell of it. */
export interface ObjectStore<T extends KubeObject> {
  readonly objects: ReadonlyMap<string, Stored<T>>
  /** Takes an object that is new or changed. */
  set(object: Stored<T>): readonly ReflectorEvent<T>[]
  /** Takes an object away, unless another with its name is held. */
  remove(object: Stored<T>): readonly ReflectorEvent<T>[]
  /** Takes a complete state in place of all that is held. */
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

/** The key under which an object is held. */
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

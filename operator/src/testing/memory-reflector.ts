import type { KubeObject, Reflector, ReflectorOptions, Stored } from '@tutti/kube'
import type { OpenReflector } from '../runtime/cache.ts'

/** A reflector whose objects a test sets. */
export interface MemoryReflector {
  readonly open: OpenReflector
  /** The first complete state. */
  sync(objects?: readonly Stored<KubeObject>[]): void
  /** Adds or changes an object. */
  put(object: Stored<KubeObject>): void
  remove(key: string): void
  readonly isClosed: boolean
  /** What `stats` says; the objects apart. */
  stats: { lists: number; watches: number; errors: number; silentMs: number }
}

/** Makes one that has not synced. */
export function memoryReflector(): MemoryReflector {
  const objects = new Map<string, Stored<KubeObject>>()
  let options: Omit<ReflectorOptions<KubeObject>, 'client'> | undefined
  let hasSynced = false
  let isClosed = false
  const keep = (object: Stored<KubeObject>): [string, Stored<KubeObject>] => {
    const { namespace, name } = object.metadata
    return [
      namespace === undefined ? name : `${namespace}/${name}`,
      options?.trim?.(object) ?? object,
    ]
  }
  const memory: MemoryReflector = {
    open: (o) => {
      options = o as never
      return {
        objects,
        get hasSynced() {
          return hasSynced
        },
        stats: () => ({ ...memory.stats, objects: objects.size }),
        // oxlint-disable-next-line typescript/require-await -- there is nothing to close
        close: async () => void (isClosed = true),
      } as unknown as Reflector<never>
    },
    sync: (initial = []) => {
      for (const object of initial) objects.set(...keep(object))
      hasSynced = true
      for (const [key, object] of objects) {
        options?.onEvent({ type: 'added', key, object, isInitial: true })
      }
      options?.onSynced?.()
    },
    put: (given) => {
      const [key, object] = keep(given)
      const old = objects.get(key)
      objects.set(key, object)
      if (old === undefined) options?.onEvent({ type: 'added', key, object, isInitial: false })
      else options?.onEvent({ type: 'updated', key, object, old })
    },
    remove: (key) => {
      const object = objects.get(key)
      objects.delete(key)
      if (object !== undefined) options?.onEvent({ type: 'deleted', key, object })
    },
    get isClosed() {
      return isClosed
    },
    stats: { lists: 1, watches: 1, errors: 0, silentMs: 0 },
  }
  return memory
}

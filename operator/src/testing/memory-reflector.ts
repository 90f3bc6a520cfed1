import type { KubeObject, Reflector, ReflectorOptions, Stored } from '@tutti/kube'
import type { OpenReflector } from '../runtime/cache.ts'

export type MemoryReflector = ReturnType<typeof memoryReflector>

/** Makes a reflector whose objects a test sets. It has synced only after `sync`. */
export function memoryReflector() {
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
  const open: OpenReflector = (o) => {
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
  }
  const memory = {
    open,
    /** Delivers the first complete state. */
    sync: (initial: readonly Stored<KubeObject>[] = []): void => {
      for (const object of initial) objects.set(...keep(object))
      hasSynced = true
      for (const [key, object] of objects) {
        options?.onEvent({ type: 'added', key, object, isInitial: true })
      }
      options?.onSynced?.()
    },
    /** Adds or changes an object. */
    put: (given: Stored<KubeObject>): void => {
      const [key, object] = keep(given)
      const old = objects.get(key)
      objects.set(key, object)
      if (old === undefined) options?.onEvent({ type: 'added', key, object, isInitial: false })
      else options?.onEvent({ type: 'updated', key, object, old })
    },
    remove: (key: string): void => {
      const object = objects.get(key)
      objects.delete(key)
      if (object !== undefined) options?.onEvent({ type: 'deleted', key, object, old: object })
    },
    get isClosed() {
      return isClosed
    },
    /** Figures for the reflector's `stats`, without the number of objects. */
    stats: { lists: 1, watches: 1, errors: 0, silentMs: 0 },
  }
  return memory
}

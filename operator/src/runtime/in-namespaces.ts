import type { KubeObject, Reflector, ReflectorOptions, ReflectorStats, Stored } from '@tutti/kube'
import type { OpenReflector } from './cache.ts'

/**
 * Limits caches to some namespaces, for an operator that has no rights in the others. A cache gets one reflector that merges a
 * watch for each namespace. A cache that names a namespace itself stays as it is.
 *
 * @param namespaces - the namespaces to watch; all if empty.
 */
export function inNamespaces(open: OpenReflector, namespaces: readonly string[]): OpenReflector {
  if (namespaces.length === 0) return open
  return (o) => (o.namespace === undefined ? openEach(open, o, new Set(namespaces)) : open(o))
}

function openEach<T extends KubeObject, K extends KubeObject>(
  open: OpenReflector,
  o: Omit<ReflectorOptions<T, K>, 'client'>,
  namespaces: ReadonlySet<string>,
): Reflector<K> {
  const objects = new Map<string, Stored<K>>()
  let waiting = namespaces.size
  const parts = [...namespaces].map((namespace) =>
    open<T, K>({
      ...o,
      namespace,
      onEvent: (event) => {
        if (event.type === 'deleted') objects.delete(event.key)
        else objects.set(event.key, event.object)
        o.onEvent(event)
      },
      onSynced: () => {
        waiting -= 1
        if (waiting === 0) o.onSynced?.()
      },
    }),
  )
  return {
    objects,
    get hasSynced() {
      return waiting === 0
    },
    stats: () => sum(parts.map((part) => part.stats())),
    close: async () => void (await Promise.all(parts.map((part) => part.close()))),
  }
}

/** Adds the numbers up. Of the times without a word it takes the longest: one watch that is stuck is enough. */
function sum(all: readonly ReflectorStats[]): ReflectorStats {
  const total = { lists: 0, watches: 0, errors: 0, objects: 0, silentMs: 0 }
  for (const { lists, watches, errors, objects, silentMs } of all) {
    total.lists += lists
    total.watches += watches
    total.errors += errors
    total.objects += objects
    total.silentMs = Math.max(total.silentMs, silentMs)
  }
  return total
}

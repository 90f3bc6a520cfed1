import type { KubeObject, Resource, Stored } from '@tutti/kube'
import type { Cache, CacheEvent } from './cache.ts'
import type { Priority } from './workqueue.ts'

/** A source of keys for a controller. */
export interface Source {
  /** Enqueues keys of present objects at low priority, then keys of every change. @returns a function that ends this. */
  start(enqueue: (key: string, priority: Priority) => void): () => void
  readonly hasSynced: boolean
  /** Returns the keys for a resync: those of the controller's own objects. Other sources return none. */
  keys(): readonly string[]
}

/** Returns true if an update matters. It is not asked for objects that are added or deleted, which always matter. */
export type Predicate<T extends KubeObject> = (now: Stored<T>, before: Stored<T>) => boolean

/**
 * Returns true for a change that users and other controllers make on purpose: of the spec, labels, annotations or finalizers, or
 * a deletion that begins.
 */
export function isIntentChange(now: Stored<KubeObject>, before: Stored<KubeObject>): boolean {
  return (
    now.metadata.generation !== before.metadata.generation ||
    now.metadata.deletionTimestamp !== before.metadata.deletionTimestamp ||
    !isSameRecord(now.metadata.labels, before.metadata.labels) ||
    !isSameRecord(now.metadata.annotations, before.metadata.annotations) ||
    (now.metadata.finalizers ?? []).join() !== (before.metadata.finalizers ?? []).join()
  )
}

/** Returns true for any write. A relist that finds an object unchanged is no write. */
export function isAnyChange(now: Stored<KubeObject>, before: Stored<KubeObject>): boolean {
  return now.metadata.resourceVersion !== before.metadata.resourceVersion
}

/** Makes the source of the controller's own objects. Each change that `predicate` accepts enqueues the object's own key. */
export function ownSource<T extends KubeObject>(
  cache: SourceCache<T>,
  predicate: Predicate<T> = isIntentChange,
): Source {
  return cacheSource({ cache, predicate, isOwn: true, toKeys: (_object, key) => [key] })
}

/**
 * Makes the source of the children of the controller's objects. Any change of a child, its status included, enqueues its owner.
 * The uid in the owner reference is not compared, because a new owner must also hear when a child of its predecessor goes away.
 */
export function childSource(cache: SourceCache<KubeObject>, owner: Resource): Source {
  const toKeys = (object: Stored<KubeObject>): readonly string[] => {
    const ref = object.metadata.ownerReferences?.find(({ controller }) => controller === true)
    if (ref === undefined || ref.kind !== owner.kind) return []
    if (groupOf(ref.apiVersion) !== owner.group) return []
    const { namespace } = object.metadata
    return [owner.namespaced && namespace !== undefined ? `${namespace}/${ref.name}` : ref.name]
  }
  return cacheSource({ cache, predicate: isAnyChange, toKeys })
}

export interface ReferenceSourceOptions<T extends KubeObject> {
  readonly cache: SourceCache<T>
  /** Function that returns the keys to enqueue for an object, from an index say. */
  readonly toKeys: (object: Stored<T>) => readonly string[]
  /** Test of which updates matter; default isAnyChange. */
  readonly predicate?: Predicate<T>
  /** Priority of changes; `low` where one object concerns many. Default `high`. */
  readonly priority?: Priority
}

/** Makes the source of objects to which the controller's objects refer. */
export function referenceSource<T extends KubeObject>(o: ReferenceSourceOptions<T>): Source {
  return cacheSource({ predicate: isAnyChange, ...o })
}

/** The part of a cache that a source needs. */
export type SourceCache<T extends KubeObject> = Pick<
  Cache<KubeObject, T>,
  'hasSynced' | 'keys' | 'subscribe'
>

interface CacheSourceOptions<T extends KubeObject> {
  readonly cache: SourceCache<T>
  readonly toKeys: (object: Stored<T>, key: string) => readonly string[]
  readonly predicate: Predicate<T>
  readonly priority?: Priority
  readonly isOwn?: boolean
}

function cacheSource<T extends KubeObject>(o: CacheSourceOptions<T>): Source {
  const { cache, toKeys, predicate, priority = 'high', isOwn = false } = o
  /** Returns the keys that a change concerns, those that the object concerned before included. */
  const keysOf = (event: CacheEvent<T>): ReadonlySet<string> => {
    if (event.type !== 'updated') return new Set(toKeys(event.object, event.key))
    if (!predicate(event.object, event.old)) return new Set()
    return new Set([...toKeys(event.object, event.key), ...toKeys(event.old, event.key)])
  }
  return {
    get hasSynced() {
      return cache.hasSynced
    },
    keys: () => (isOwn ? cache.keys() : []),
    start: (enqueue) =>
      cache.subscribe((event) => {
        const isInitial = event.type === 'added' && event.isInitial
        for (const key of keysOf(event)) enqueue(key, isInitial ? 'low' : priority)
      }),
  }
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/')
  return slash < 0 ? '' : apiVersion.slice(0, slash)
}

type Texts = Readonly<Record<string, string>>

function isSameRecord(one: Texts = {}, other: Texts = {}): boolean {
  const keys = Object.keys(one)
  return keys.length === Object.keys(other).length && keys.every((key) => one[key] === other[key])
}

import type { KubeObject, Resource, Stored } from '@tutti/kube'
import type { Cache, CacheEvent } from './cache.ts'
import type { Priority } from './workqueue.ts'

/** Where the keys of a controller come from. */
export interface Source {
  /** Keys for what is there, at low priority, then for every change. @returns ends it. */
  start(enqueue: (key: string, priority: Priority) => void): () => void
  readonly hasSynced: boolean
  /** The keys of the controller's own objects, to look at them again once in a while; none from other sources. */
  keys(): readonly string[]
}

/** Whether a change matters. Objects that come or go always do. */
export type Predicate<T extends KubeObject> = (now: Stored<T>, before: Stored<T>) => boolean

/**
 * Returns true for what users and other controllers change on purpose: the spec, labels, annotations, finalizers, that it is being
 * deleted.
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

/** Any write at all; a relist that finds an object as it was is none. */
export function isAnyChange(now: Stored<KubeObject>, before: Stored<KubeObject>): boolean {
  return now.metadata.resourceVersion !== before.metadata.resourceVersion
}

/** The controller's own objects, by their own keys, where what was intended changed. */
export function ownSource<T extends KubeObject>(
  cache: SourceCache<T>,
  predicate: Predicate<T> = isIntentChange,
): Source {
  return cacheSource({ cache, predicate, isOwn: true, toKeys: (_object, key) => [key] })
}

/**
 * The children of the controller's objects: a change of any of them, its status included, is the owner's business. The uid in
 * the reference does not matter here: an owner whose predecessor's child goes away wants to know, too.
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
  /** The keys that an object concerns, from an index say. */
  readonly toKeys: (object: Stored<T>) => readonly string[]
  /** Default isAnyChange. */
  readonly predicate?: Predicate<T>
  /** Priority of changes; `low` where one object concerns many. Default `high`. */
  readonly priority?: Priority
}

/** Objects that the controller's objects refer to. */
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
  /** A change concerns those whom the object concerned before, too. */
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

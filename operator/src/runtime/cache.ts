import type { Clock, Logger } from '@tutti/chassis'
import { assert } from '@tutti/errors'
import {
  type KubeObject,
  type Reflector,
  type ReflectorEvent,
  type ReflectorOptions,
  type Resource,
  type Stored,
  withoutManagedFields,
} from '@tutti/kube'
import { resourceServed, resourceUnknown } from './log-events.ts'
import type { CacheReading } from './metrics.ts'
import { ObjectIndex } from './object-index.ts'

/** Returns the values under which an index finds an object. */
export type Indexer<T extends KubeObject> = (object: Stored<T>) => readonly string[]

/** The parts of an owner's metadata by which its objects are found. */
export type OwnerId = Pick<Stored<KubeObject>['metadata'], 'namespace' | 'uid'>

/** A change in a cache; see ReflectorEvent. */
export type CacheEvent<T extends KubeObject> = ReflectorEvent<T>

/** Opens the reflector of a cache: `createReflector` with a client, or a test's substitute. */
export type OpenReflector = <T extends KubeObject, K extends KubeObject = T>(
  o: Omit<ReflectorOptions<T, K>, 'client'>,
) => Reflector<K>

/** Options of a cache. @typeParam K - the part of an object that the cache keeps. */
export interface CacheOptions<T extends KubeObject, K extends KubeObject = T> {
  readonly openReflector: OpenReflector
  readonly resource: Resource<T>
  /** Namespace to read; all if absent. */
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  /** Function that cuts an object of the server to the part that is kept. Default: only managedFields go. */
  readonly trim?: (object: Stored<T>) => Stored<K>
  readonly indexers?: Readonly<Record<string, Indexer<K>>>
  readonly clock: Clock
  readonly log: Logger
  /** Question to the server for kinds that a cluster may lack. While the answer is false, the cache is empty and asks again. */
  readonly isServed?: () => Promise<boolean>
  /** Milliseconds between two questions for a kind that the server does not serve; default 30 s. */
  readonly askMs?: number
  /** True to freeze objects, so that code that changes a cached object throws. For tests. */
  readonly isFrozen?: boolean
}

const ASK_MS = 30_000
const RETRY_MS = 2_000

/**
 * A cache of a resource's objects, with indexes and listeners. Callers share the objects and must not change them. Keys are
 * `namespace/name`, or the name alone for cluster-scoped objects.
 *
 * @typeParam T - an object as the server has it. K is the part that the cache keeps; code that reads another part does not
 * compile.
 */
export class Cache<T extends KubeObject, K extends KubeObject = T> {
  readonly resource: Resource<T>
  readonly #options: CacheOptions<T, K>
  readonly #indexes = new Map<string, ObjectIndex<K>>()
  /** Index by the owner's uid alone, which costs no further text: the object has it anyway. */
  readonly #byOwner = new ObjectIndex<K>(toOwnerUids)
  readonly #byNamespace = new ObjectIndex<K>(({ metadata: { namespace } }) =>
    namespace === undefined ? [] : [namespace],
  )
  readonly #handlers = new Set<(event: CacheEvent<K>) => void>()
  readonly #servedListeners = new Set<() => void>()
  readonly #synced = Promise.withResolvers<void>()
  #reflector: Reflector<K> | undefined
  #isStarted = false
  #isClosed = false
  /**
   * True since the server once said that it does not serve the kind. The cache then counts as synced, also during the first read.
   */
  #isAbsent = false
  #stopTimer: () => void = () => {}
  #progress = 0
  #progressAt: number

  constructor(o: CacheOptions<T, K>) {
    this.resource = o.resource
    this.#options = o
    this.#progressAt = o.clock.now()
    for (const [name, indexer] of Object.entries(o.indexers ?? {})) {
      this.#indexes.set(name, new ObjectIndex(indexer))
    }
  }

  /** Begins to read. It may be called only once. */
  start(): void {
    assert(!this.#isStarted, `cache of ${this.resource.plural} started twice`)
    this.#isStarted = true
    if (this.#options.isServed === undefined) this.#open()
    else void this.#openOnceServed(this.#options.isServed)
  }

  #open(): void {
    this.#reflector = this.#options.openReflector<T, K>({
      ...this.#options,
      ...this.#trim(),
      onEvent: (event) => this.#take(event),
      onSynced: () => this.#synced.resolve(),
    })
  }

  get hasSynced(): boolean {
    return this.#isAbsent || this.#reflector?.hasSynced === true
  }

  /** False if the server does not know the resource. */
  get isServed(): boolean {
    return this.#reflector !== undefined
  }

  /** Calls the listener when the server begins to serve a resource that it did not serve before. */
  onServed(listener: () => void): void {
    this.#servedListeners.add(listener)
  }

  /** Promise of the first complete state. It also resolves if the server does not serve the resource. */
  get synced(): Promise<void> {
    return this.#synced.promise
  }

  /** Cuts an object from an answer of the server to the part that the cache keeps. The cache itself does not change. */
  keep(object: Stored<T>): Stored<K> {
    const { trim, isFrozen = false } = this.#options
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- without a trim, what is kept is a T
    const kept = trim?.(object) ?? (withoutManagedFields(object) as unknown as Stored<K>)
    return isFrozen ? freeze(kept) : kept
  }

  get(key: string): Stored<K> | undefined {
    return this.#reflector?.objects.get(key)
  }

  /** Returns all objects, in no particular order. */
  list(): readonly Stored<K>[] {
    return [...(this.#reflector?.objects.values() ?? [])]
  }

  keys(): readonly string[] {
    return [...(this.#reflector?.objects.keys() ?? [])]
  }

  /** Returns the objects for which the named indexer gives `value`. */
  byIndex(name: string, value: string): readonly Stored<K>[] {
    return this.#indexOf(name).get(value)
  }

  /** Returns the values for which the named index has at least one object. */
  indexValues(name: string): readonly string[] {
    return this.#indexOf(name).values()
  }

  /** Returns the objects in the owner's namespace that name the owner as their controller. */
  byOwner(owner: OwnerId): readonly Stored<K>[] {
    // A user who may write in another namespace could claim any uid there.
    return this.#byOwner
      .get(owner.uid)
      .filter(({ metadata }) => metadata.namespace === owner.namespace)
  }

  /** Returns the objects of a namespace. */
  inNamespace(namespace = ''): readonly Stored<K>[] {
    return this.#byNamespace.get(namespace)
  }

  /**
   * Calls `handler` for each object that is there, and then for every change, in order. The handler must return fast, so it
   * should only enqueue keys.
   *
   * @returns a function that ends the subscription.
   */
  subscribe(handler: (event: CacheEvent<K>) => void): () => void {
    if (this.hasSynced) {
      for (const [key, object] of this.#reflector?.objects ?? []) {
        handler({ type: 'added', key, object, isInitial: true })
      }
    }
    this.#handlers.add(handler)
    return () => void this.#handlers.delete(handler)
  }

  reading(): CacheReading {
    const stats = this.#reflector?.stats()
    return { resource: this.resource.plural, lists: 0, watches: 0, errors: 0, objects: 0, ...stats }
  }

  /** True if for `limitMs` the server sent nothing and the reflector tried nothing. Such a cache does not recover by itself. */
  isStuck(limitMs: number): boolean {
    const stats = this.#reflector?.stats()
    if (stats === undefined) return false
    const progress = stats.lists + stats.watches + stats.errors
    const now = this.#options.clock.now()
    if (progress !== this.#progress) {
      this.#progress = progress
      this.#progressAt = now
    }
    return stats.silentMs > limitMs && now - this.#progressAt > limitMs
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopTimer()
    this.#handlers.clear()
    await this.#reflector?.close()
  }

  async #openOnceServed(isServed: () => Promise<boolean>): Promise<void> {
    const served = await isServed().catch((error: unknown) => {
      resourceUnknown(this.#options.log, this.resource.plural, error)
      return undefined
    })
    if (this.#isClosed) return
    if (served === true) {
      this.#open()
      if (!this.#isAbsent) return
      resourceServed(this.#options.log, this.resource.plural)
      for (const listener of this.#servedListeners) listener()
      return
    }
    if (served === false) {
      this.#isAbsent = true
      this.#synced.resolve()
    }
    // Without an answer there is nothing to go on with, so it asks again sooner.
    const delayMs = served === false ? (this.#options.askMs ?? ASK_MS) : RETRY_MS
    this.#stopTimer = this.#options.clock.setTimer(
      delayMs,
      () => void this.#openOnceServed(isServed),
    )
  }

  #trim(): { trim?: (object: Stored<T>) => Stored<K> } {
    const { trim, isFrozen = false } = this.#options
    if (trim === undefined && !isFrozen) return {}
    return { trim: (object) => this.keep(object) }
  }

  #indexOf(name: string): ObjectIndex<K> {
    const index = this.#indexes.get(name)
    assert(index !== undefined, `cache of ${this.resource.plural} has no index "${name}"`)
    return index
  }

  #take(event: CacheEvent<K>): void {
    for (const index of [this.#byOwner, this.#byNamespace, ...this.#indexes.values()]) {
      if (event.type !== 'added') index.remove(event.old)
      if (event.type !== 'deleted') index.add(event.object)
    }
    for (const handler of this.#handlers) handler(event)
  }
}

function toOwnerUids({ metadata: { ownerReferences = [] } }: KubeObject): readonly string[] {
  return ownerReferences.filter(({ controller }) => controller === true).map(({ uid }) => uid)
}

/** Freezes a value at every depth. */
function freeze<V>(value: V): V {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const part of Object.values(value)) freeze(part)
  return Object.freeze(value)
}

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

/** The values under which an object is found. */
export type Indexer<T extends KubeObject> = (object: Stored<T>) => readonly string[]

/** Of the metadata of an owner. */
export type OwnerId = Pick<Stored<KubeObject>['metadata'], 'namespace' | 'uid'>

/** A change in a cache; see ReflectorEvent. */
export type CacheEvent<T extends KubeObject> = ReflectorEvent<T>

/** Makes the reflector of a cache: `createReflector` with its client, or a test's own. */
export type OpenReflector = <T extends KubeObject>(
  o: Omit<ReflectorOptions<T>, 'client'>,
) => Reflector<T>

export interface CacheOptions<T extends KubeObject> {
  readonly openReflector: OpenReflector
  readonly resource: Resource<T>
  /** Absent: all namespaces. */
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  /** Leaves out what is not read; managedFields if absent. */
  readonly trim?: (object: Stored<T>) => Stored<T>
  readonly indexers?: Readonly<Record<string, Indexer<T>>>
  readonly clock: Clock
  readonly log: Logger
  /** For kinds that a cluster may lack: while the server does not serve them the cache is empty, and asks again. */
  readonly isServed?: () => Promise<boolean>
  /** How often it asks for a kind that the server does not serve; default 30 s. */
  readonly askMs?: number
  /** True in tests: a change of a cached object is then an error where it happens. */
  readonly isFrozen?: boolean
}

const ASK_MS = 30_000
const RETRY_MS = 2_000

/**
 * A copy of a resource's objects with indexes over it, and with listeners. Objects are shared and never changed.
 * Keys are `namespace/name`, or the name alone.
 */
export class Cache<T extends KubeObject> {
  readonly resource: Resource<T>
  readonly #o: CacheOptions<T>
  readonly #indexes = new Map<string, ObjectIndex<T>>()
  readonly #byOwner = new ObjectIndex<T>(toOwnerKeys)
  readonly #byNamespace = new ObjectIndex<T>(({ metadata: { namespace } }) =>
    namespace === undefined ? [] : [namespace],
  )
  readonly #handlers = new Set<(event: CacheEvent<T>) => void>()
  readonly #servedListeners = new Set<() => void>()
  readonly #synced = Promise.withResolvers<void>()
  #reflector: Reflector<T> | undefined
  #isStarted = false
  #isClosed = false
  /** It was: what counts as complete stays so while the kind is read for the first time. */
  #isAbsent = false
  #stopTimer: () => void = () => {}
  #progress = 0
  #progressAt: number

  constructor(o: CacheOptions<T>) {
    this.resource = o.resource
    this.#o = o
    this.#progressAt = o.clock.now()
    for (const [name, indexer] of Object.entries(o.indexers ?? {})) {
      this.#indexes.set(name, new ObjectIndex(indexer))
    }
  }

  /** Begins to read. Once. */
  start(): void {
    assert(!this.#isStarted, `cache of ${this.resource.plural} started twice`)
    this.#isStarted = true
    if (this.#o.isServed === undefined) this.#open()
    else void this.#openOnceServed(this.#o.isServed)
  }

  #open(): void {
    this.#reflector = this.#o.openReflector<T>({
      ...this.#o,
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

  /** Calls back when the server knows the resource, and did not when it was first asked. */
  onServed(listener: () => void): void {
    this.#servedListeners.add(listener)
  }

  /** Resolves once the first complete state is there. */
  get synced(): Promise<void> {
    return this.#synced.promise
  }

  get(key: string): Stored<T> | undefined {
    return this.#reflector?.objects.get(key)
  }

  /** All objects, in no order that means something. */
  list(): readonly Stored<T>[] {
    return [...(this.#reflector?.objects.values() ?? [])]
  }

  keys(): readonly string[] {
    return [...(this.#reflector?.objects.keys() ?? [])]
  }

  /** The objects that the named indexer gives `value`. */
  byIndex(name: string, value: string): readonly Stored<T>[] {
    return this.#indexOf(name).get(value)
  }

  /** The values under which the named index finds something. */
  indexValues(name: string): readonly string[] {
    return this.#indexOf(name).values()
  }

  /** The objects of the owner's namespace whose controller it is. */
  byOwner(owner: OwnerId): readonly Stored<T>[] {
    return this.#byOwner.get(toOwnerKey(owner.namespace, owner.uid))
  }

  /** The objects of a namespace. */
  inNamespace(namespace = ''): readonly Stored<T>[] {
    return this.#byNamespace.get(namespace)
  }

  /**
   * Calls `handler` for each object that is there, and then for every change, one after the other. It only enqueues.
   *
   * @returns takes the handler back.
   */
  subscribe(handler: (event: CacheEvent<T>) => void): () => void {
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

  /** True if for `limitMs` the server said nothing and nothing was tried: the cache will not come back by itself. */
  isStuck(limitMs: number): boolean {
    const stats = this.#reflector?.stats()
    if (stats === undefined) return false
    const progress = stats.lists + stats.watches + stats.errors
    const now = this.#o.clock.now()
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
      resourceUnknown(this.#o.log, this.resource.plural, error)
      return undefined
    })
    if (this.#isClosed) return
    if (served === true) {
      this.#open()
      if (!this.#isAbsent) return
      resourceServed(this.#o.log, this.resource.plural)
      for (const listener of this.#servedListeners) listener()
      return
    }
    if (served === false) {
      this.#isAbsent = true
      this.#synced.resolve()
    }
    // Without an answer there is nothing to go on with, so it asks again sooner.
    const delayMs = served === false ? (this.#o.askMs ?? ASK_MS) : RETRY_MS
    this.#stopTimer = this.#o.clock.setTimer(delayMs, () => void this.#openOnceServed(isServed))
  }

  #trim(): { trim?: (object: Stored<T>) => Stored<T> } {
    const { trim, isFrozen = false } = this.#o
    if (!isFrozen) return trim === undefined ? {} : { trim }
    return { trim: (object) => freeze((trim ?? withoutManagedFields)(object)) }
  }

  #indexOf(name: string): ObjectIndex<T> {
    const index = this.#indexes.get(name)
    assert(index !== undefined, `cache of ${this.resource.plural} has no index "${name}"`)
    return index
  }

  #take(event: CacheEvent<T>): void {
    for (const index of [this.#byOwner, this.#byNamespace, ...this.#indexes.values()]) {
      if (event.type === 'deleted') index.remove(event.key)
      else index.set(event.key, event.object)
    }
    for (const handler of this.#handlers) handler(event)
  }
}

/** Owners are in the namespace of their children: a user who may write in another could claim any uid there. */
function toOwnerKeys({ metadata }: KubeObject): readonly string[] {
  const { namespace, ownerReferences: owners = [] } = metadata
  return owners
    .filter(({ controller }) => controller === true)
    .map(({ uid }) => toOwnerKey(namespace, uid))
}

function toOwnerKey(namespace: string | undefined, uid: string): string {
  return `${namespace ?? ''}/${uid}`
}

/** Freezes a value at every depth. */
function freeze<V>(value: V): V {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const part of Object.values(value)) freeze(part)
  return Object.freeze(value)
}

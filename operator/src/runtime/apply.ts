import { assert } from '@tutti/errors'
import {
  isNamespaceTerminating,
  isTerminal,
  type KubeError,
  type KubeObject,
  keyOf,
  type ObjectKey,
  type Resource,
  type Stored,
  toKeyString,
  unlessNotFound,
} from '@tutti/kube'
import type { OwnerId } from './cache.ts'
import type { ChildRecord } from './child-record.ts'
import { ChildWriter, type ChildWriterOptions } from './child-writer.ts'
import { childIdOf, controllerOf, type DesiredChild, type Owner, toOwned } from './children.ts'
import { handOverReplicas } from './hand-over.ts'
import type { ApplyOutcome } from './metrics.ts'
import { OwnerCheck, OwnerMoved } from './owner-check.ts'

/** The part of a cache of one kind of children that an applier needs. `Cache` has it. */
export interface ChildCache {
  readonly resource: Resource
  get(key: string): Stored<ChildRecord> | undefined
  byOwner(owner: OwnerId): readonly Stored<ChildRecord>[]
  inNamespace(namespace: string | undefined): readonly Stored<ChildRecord>[]
  keep(object: Stored<KubeObject>): Stored<ChildRecord>
}

/** The outcome of one child in a pass of the applier. */
export type ChildOutcome = { readonly resource: Resource; readonly key: ObjectKey } & (
  | {
      /** `repaired`: it was as wanted before, and somebody else changed it. */
      readonly result: 'applied' | 'repaired' | 'unchanged'
      readonly object: Stored<ChildRecord>
    }
  /** An object of that name exists, and its controller is not the owner. The object is left alone. */
  | { readonly result: 'nameConflict'; readonly message: string }
  /** The server refuses the child, and a repetition would not help. */
  | { readonly result: 'refused'; readonly error: KubeError }
  /** The child, its owner or its namespace is being deleted. */
  | { readonly result: 'terminating'; readonly finalizers: readonly string[] }
  /** A child that this one needs is not there, so nothing was done. The outcome of the other child tells why. */
  | { readonly result: 'held' }
  | { readonly result: 'failed'; readonly error: unknown }
)

/** A child, by its kind and key. */
export type ChildId = Pick<ChildOutcome, 'resource' | 'key'>

export interface SyncOptions {
  readonly signal: AbortSignal
  /** Callback for each child that is `repaired`, called at once: if this pass fails, the next one no longer sees the repair. */
  readonly onRepaired?: (child: ChildId) => void
}

export interface SyncResult {
  /** Outcomes in the order of the desired children, then failed deletions. */
  readonly outcomes: readonly ChildOutcome[]
}

export interface ApplierOptions extends ChildWriterOptions {
  /** Caches of every kind of child. `sync` deletes the owner's objects in them that are not desired. */
  readonly caches: readonly ChildCache[]
  /** Test for objects without this owner that count as its children all the same; default: none does. */
  readonly adopts?: (object: Stored<ChildRecord>) => boolean
}

/**
 * Brings the children of an owner to their desired state, by server-side apply with force. It writes only objects that differ. It
 * never writes to an object of another controller, and never creates a child for an owner that is gone.
 */
export class Applier {
  readonly #options: ApplierOptions
  readonly #caches: ReadonlyMap<string, ChildCache>
  readonly #writer: ChildWriter

  constructor(o: ApplierOptions) {
    this.#options = o
    this.#writer = new ChildWriter(o)
    this.#caches = new Map(o.caches.map((cache) => [kindIdOf(cache.resource), cache]))
    for (const { resource } of o.caches) {
      for (const result of RESULTS) o.metrics.applies.init({ kind: resource.kind, result })
    }
  }

  /** Forgets the last applies for the children of an owner that is gone. @param ownerKey - the owner's key in its cache. */
  forget(ownerKey: string): void {
    this.#writer.forget(ownerKey)
  }

  /**
   * Applies every desired child in order. A failed child does not stop the next ones, except those that need it. If all children
   * are in place, it then deletes the owner's other objects, adopted ones included.
   *
   * @throws the signal's reason if the signal aborts; OwnerMoved if the owner is gone or edited when something must be written.
   * All other errors are in the outcomes.
   */
  async sync(
    owner: Owner,
    desired: readonly DesiredChild[],
    options: SyncOptions,
  ): Promise<SyncResult> {
    if (isLeaving(owner)) throw new OwnerMoved('the owner is being deleted')
    const pass = this.#begin(owner, options)
    const outcomes = await this.#applyAll(pass, desired)
    const isComplete = outcomes.every(({ result }) => SETTLED.has(result))
    if (isComplete) await this.#prune(pass, desired, outcomes)
    return { outcomes }
  }

  /**
   * Applies children as `sync` does, and deletes none. While the owner is being deleted, it changes children that exist and
   * creates none.
   *
   * @throws as `sync`
   */
  async apply(
    owner: Owner,
    desired: readonly DesiredChild[],
    options: SyncOptions,
  ): Promise<SyncResult> {
    return { outcomes: await this.#applyAll(this.#begin(owner, options), desired) }
  }

  #begin(owner: Owner, { signal, onRepaired }: SyncOptions): Pass {
    const check = new OwnerCheck(this.#options.client, owner, signal)
    return { owner, check, signal, ...(onRepaired !== undefined && { onRepaired }) }
  }

  async #applyAll(pass: Pass, desired: readonly DesiredChild[]): Promise<ChildOutcome[]> {
    const outcomes: ChildOutcome[] = []
    for (const child of desired) outcomes.push(await this.#syncChild(pass, child, outcomes))
    return outcomes
  }

  async #syncChild(
    pass: Pass,
    child: DesiredChild,
    before: readonly ChildOutcome[],
  ): Promise<ChildOutcome> {
    const { resource } = child
    const key = keyOf(child.object)
    if (lacksNeeds(child, before)) return { resource, key, result: 'held' }
    try {
      const outcome = await this.#ensure(pass, child, key)
      if (outcome.result === 'nameConflict') this.#writer.count(resource, 'conflict')
      if (outcome.result === 'repaired') pass.onRepaired?.({ resource, key })
      return { resource, key, ...outcome }
    } catch (error) {
      return this.#toFailure(pass, { resource, key }, error)
    }
  }

  async #ensure(pass: Pass, child: DesiredChild, key: ObjectKey): Promise<Ensured> {
    const { resource, handsOverReplicas: handsOver } = child
    const { owner, check, signal } = pass
    const cache = this.#cacheOf(resource)
    const current = cache.get(toKeyString(key)) ?? (await this.#readLive(pass, cache, key))
    const blocked = current && this.#toBlocked(owner, resource, current)
    if (blocked !== undefined) return blocked
    if (current === undefined && isLeaving(owner)) return { result: 'terminating', finalizers: [] }
    const beforeChange = async (uid: string): Promise<void> => {
      // A process that has just started may have been given an old state: what it wants would undo what was wanted since.
      await check.ensure()
      const { client } = this.#options
      if (handsOver) await handOverReplicas({ client, resource, key, uid, signal })
    }
    const wanted = { resource, object: toOwned(owner, child) }
    const ownerKey = toKeyString(keyOf(owner.object))
    const toRecord = (object: Stored<KubeObject>) => cache.keep(object)
    return await this.#writer.write(wanted, { ownerKey, current, toRecord, beforeChange, signal })
  }

  /** Finds why a present object cannot be written. */
  #toBlocked(owner: Owner, resource: Resource, current: Stored<ChildRecord>): Ensured | undefined {
    const { adopts = () => false } = this.#options
    const isOurs = controllerOf(current)?.uid === owner.object.metadata.uid || adopts(current)
    if (!isOurs)
      return { result: 'nameConflict', message: toConflictText(owner, resource, current) }
    const { deletionTimestamp, finalizers = [] } = current.metadata
    return deletionTimestamp === undefined ? undefined : { result: 'terminating', finalizers }
  }

  async #readLive(
    { check, signal }: Pass,
    cache: ChildCache,
    key: ObjectKey,
  ): Promise<Stored<ChildRecord> | undefined> {
    // A child that is not there is made at once: by then the owner has to be there.
    await check.ensure()
    // Caches hold only objects with our labels, and may be behind: whether something is there, the server knows.
    const live = await unlessNotFound(this.#options.client.get(cache.resource, key, { signal }))
    return live && cache.keep(live)
  }

  async #prune(
    pass: Pass,
    desired: readonly DesiredChild[],
    outcomes: ChildOutcome[],
  ): Promise<void> {
    const wanted = new Set(desired.map((child) => childIdOf(child.resource, keyOf(child.object))))
    const { owner, signal } = pass
    const ownerKey = toKeyString(keyOf(owner.object))
    for (const cache of this.#caches.values()) {
      const { resource } = cache
      for (const object of this.#ownedIn(cache, owner)) {
        const key = keyOf(object)
        if (wanted.has(childIdOf(resource, key))) continue
        if (object.metadata.deletionTimestamp !== undefined) continue
        try {
          await pass.check.ensure()
          await this.#writer.delete({ resource, object }, { ownerKey, signal })
        } catch (error) {
          outcomes.push(this.#toFailure(pass, { resource, key }, error))
        }
      }
    }
  }

  #ownedIn(cache: ChildCache, { object: { metadata } }: Owner): readonly Stored<ChildRecord>[] {
    const { adopts } = this.#options
    if (adopts === undefined) return cache.byOwner(metadata)
    const uids = new Set(cache.byOwner(metadata).map((object) => object.metadata.uid))
    return cache
      .inNamespace(metadata.namespace)
      .filter((object) => uids.has(object.metadata.uid) || adopts(object))
  }

  #toFailure(
    { signal }: Pass,
    child: { readonly resource: Resource; readonly key: ObjectKey },
    error: unknown,
  ): ChildOutcome {
    if (error instanceof OwnerMoved) throw error
    if (signal.aborted) throw signal.reason
    if (isNamespaceTerminating(error)) return { ...child, result: 'terminating', finalizers: [] }
    this.#writer.count(child.resource, 'error')
    if (isTerminal(error)) return { ...child, result: 'refused', error }
    return { ...child, result: 'failed', error }
  }

  #cacheOf(resource: Resource): ChildCache {
    const cache = this.#caches.get(kindIdOf(resource))
    assert(cache !== undefined, `the applier has no cache of ${resource.plural}`)
    return cache
  }
}

/**
 * Throws the error of the first `failed` child, so that the reconcile is retried. The caller reports `refused` children itself.
 */
export function throwIfFailed({ outcomes }: Pick<SyncResult, 'outcomes'>): void {
  for (const outcome of outcomes) if (outcome.result === 'failed') throw outcome.error
}

interface Pass extends SyncOptions {
  readonly owner: Owner
  readonly check: OwnerCheck
}

type WithoutPlace<O> = O extends ChildOutcome ? Omit<O, 'resource' | 'key'> : never
type Ensured = WithoutPlace<
  Exclude<ChildOutcome, { readonly result: 'failed' | 'refused' | 'held' }>
>

const SETTLED: ReadonlySet<ChildOutcome['result']> = new Set(['applied', 'repaired', 'unchanged'])

function isLeaving({ object: { metadata } }: Owner): boolean {
  return metadata.deletionTimestamp !== undefined
}

function lacksNeeds({ needs }: DesiredChild, before: readonly ChildOutcome[]): boolean {
  return before.some(({ resource, result }) => needs.includes(resource) && !SETTLED.has(result))
}

const RESULTS: readonly ApplyOutcome[] = ['applied', 'skipped', 'conflict', 'error']

function kindIdOf({ group, kind }: Resource): string {
  return `${group}/${kind}`
}

function toConflictText(owner: Owner, resource: Resource, current: Stored<ChildRecord>): string {
  const controller = controllerOf(current)
  const whose =
    controller === undefined
      ? 'no controller'
      : `the controller ${controller.kind} "${controller.name}" (uid ${controller.uid})`
  const { name } = current.metadata
  return `${resource.kind} "${name}" is there already with ${whose}, want ${owner.resource.kind} "${owner.object.metadata.name}" (uid ${owner.object.metadata.uid}); delete or rename it`
}

import {
  type Client,
  type Desired,
  type KubeObject,
  keyOf,
  type Resource,
  type Stored,
  unlessNotFound,
} from '@tutti/kube'
import { withMark } from './applied-mark.ts'
import { digestOf } from './canonical.ts'
import { type ChildRecord, isAsApplied } from './child-record.ts'
import { childIdOf, FIELD_MANAGER } from './children.ts'
import type { ApplyOutcome, RuntimeMetrics } from './metrics.ts'
import { isBehind } from './resource-version.ts'

export interface ChildWriterOptions {
  readonly client: Client
  readonly metrics: Pick<RuntimeMetrics, 'applies'>
}

/** The child to apply: its kind and the whole desired object. */
export interface WantedChild {
  readonly resource: Resource
  readonly object: Desired<KubeObject>
}

export interface ChildWriteOptions {
  /** Key of the owner. The writer remembers the child under it until `forget`. */
  readonly ownerKey: string
  /** Present object, from a cache or the server; undefined if the server has none. */
  readonly current: Stored<ChildRecord> | undefined
  /** Function that cuts an answer of the server to the part that caches keep. */
  readonly toRecord: (object: Stored<KubeObject>) => Stored<ChildRecord>
  /** Check before a write to an object that exists. The write waits for it, and does not happen if it throws. */
  readonly beforeChange: (uid: string) => Promise<void>
  readonly signal: AbortSignal
}

export interface WrittenChild {
  /** `repaired`: it was as wanted before, and somebody else changed it. */
  readonly result: 'applied' | 'repaired' | 'unchanged'
  readonly object: Stored<ChildRecord>
}

/** A child as the server answered when it was last applied. */
interface AppliedChild {
  readonly uid: string
  readonly resourceVersion: string
  /** Digest of the object that was applied, its owner reference included. */
  readonly digest: string
  /** Digest of the owned fields of the answer; see ChildRecord. */
  readonly owned: string
}

/** An object that is to be applied, before the uid is added that guards it. */
interface ApplyRequest {
  readonly resource: Resource
  readonly desired: Desired<KubeObject>
  readonly digest: string
}

/**
 * Writes single objects by server-side apply with force, and skips those that still stand as they were applied. The caller
 * decides whether an object may be written to.
 */
export class ChildWriter {
  readonly #options: ChildWriterOptions
  /**
   * By the key of the owner and the child; in memory only, and only of those whose record does not tell it: a cache has not seen
   * the answer yet, or the server writes in other words what was applied.
   */
  readonly #known = new Map<string, Map<string, AppliedChild>>()

  constructor(o: ChildWriterOptions) {
    this.#options = o
  }

  /** Forgets the children of an owner. */
  forget(ownerKey: string): void {
    this.#known.delete(ownerKey)
  }

  count({ kind }: Resource, result: ApplyOutcome): void {
    this.#options.metrics.applies.add({ kind, result })
  }

  /**
   * Applies the desired object, unless it is already in place.
   *
   * @throws KubeError; it is an `isUidMismatch` if the present object was deleted meanwhile.
   */
  async write(
    { resource, object: desired }: WantedChild,
    o: ChildWriteOptions,
  ): Promise<WrittenChild> {
    const request = { resource, desired, digest: digestOf(desired) }
    const { current } = o
    if (current === undefined) return { result: 'applied', object: await this.#apply(request, o) }
    const known = this.#knownOf(request, o.ownerKey, current)
    // While the cache is behind, what the server answered is newer than what the cache shows.
    const isNewer = known !== undefined && isBehind(current, known)
    const { uid, resourceVersion } = isNewer ? known : current.metadata
    const isSameDesired = (known?.digest ?? current.mark) === request.digest
    if (isNewer ? isSameDesired : isInPlace(current, request, known)) {
      this.count(resource, 'skipped')
      return { result: 'unchanged', object: current }
    }
    await o.beforeChange(uid)
    const object = await this.#apply(request, o, uid)
    // The server keeps the version of an object that it did not change.
    if (object.metadata.resourceVersion === resourceVersion) return { result: 'unchanged', object }
    return { result: isSameDesired ? 'repaired' : 'applied', object }
  }

  /** Finds what this process applied last, as long as the record in the cache does not tell as much. */
  #knownOf(
    request: ApplyRequest,
    ownerKey: string,
    current: Stored<ChildRecord>,
  ): AppliedChild | undefined {
    const children = this.#known.get(ownerKey)
    const known = children?.get(idOf(request))
    if (known === undefined || isBehind(current, known)) return known
    if (!isAsApplied(current, request)) return known
    children?.delete(idOf(request))
    if (children?.size === 0) this.#known.delete(ownerKey)
    return undefined
  }

  /** @param uid - of the object that is there; an apply with it does not create another. */
  async #apply(
    request: ApplyRequest,
    { ownerKey, toRecord, signal }: ChildWriteOptions,
    uid?: string,
  ): Promise<Stored<ChildRecord>> {
    const marked = withMark(request)
    const metadata = { ...marked.metadata, ...(uid !== undefined && { uid }) }
    const options = { fieldManager: FIELD_MANAGER, signal }
    const answer = await this.#options.client.apply(
      request.resource,
      { ...marked, metadata },
      options,
    )
    this.count(request.resource, 'applied')
    const record = toRecord(answer)
    this.#remember(request, ownerKey, record)
    return record
  }

  #remember(request: ApplyRequest, ownerKey: string, record: Stored<ChildRecord>): void {
    const { uid, resourceVersion } = record.metadata
    const child = { uid, resourceVersion, digest: request.digest, owned: record.owned }
    const children = this.#known.get(ownerKey) ?? new Map<string, AppliedChild>()
    this.#known.set(ownerKey, children.set(idOf(request), child))
  }

  /**
   * Deletes an object if its uid and resourceVersion are still those of `object`. An object that is gone already is no error.
   *
   * @throws KubeError; it is a Conflict if the object has changed.
   */
  async delete(
    { resource, object }: { readonly resource: Resource; readonly object: Stored<ChildRecord> },
    { ownerKey, signal }: Pick<ChildWriteOptions, 'ownerKey' | 'signal'>,
  ): Promise<void> {
    const { uid, resourceVersion } = object.metadata
    this.#known.get(ownerKey)?.delete(childIdOf(resource, keyOf(object)))
    const preconditions = { uid, resourceVersion }
    const options = { preconditions, propagation: 'Background', signal } as const
    await unlessNotFound(this.#options.client.delete(resource, keyOf(object), options))
  }
}

function idOf({ resource, desired }: ApplyRequest): string {
  return childIdOf(resource, keyOf(desired))
}

/** True if what is wanted is what was applied last, and all of it still stands, in the server's words. */
function isInPlace(
  current: ChildRecord,
  request: ApplyRequest,
  known: AppliedChild | undefined,
): boolean {
  if (isAsApplied(current, request)) return true
  return known?.digest === request.digest && known.owned === current.owned
}

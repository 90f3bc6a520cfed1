import {
  type Client,
  type Desired,
  type KubeObject,
  keyOf,
  type Resource,
  type Stored,
  unlessNotFound,
} from '@tutti/kube'
import { isAsApplied, withMark } from './applied-mark.ts'
import { digestOf } from './canonical.ts'
import { childIdOf, FIELD_MANAGER, stampOf } from './children.ts'
import type { ApplyOutcome, RuntimeMetrics } from './metrics.ts'
import { isBehind } from './resource-version.ts'

export interface ChildWriterOptions {
  readonly client: Client
  readonly metrics: Pick<RuntimeMetrics, 'applies'>
}

/** A child as it is to be applied. */
export interface WantedChild {
  readonly resource: Resource
  readonly object: Desired<KubeObject>
}

export interface WriteOptions {
  /** Under which the child is remembered. */
  readonly ownerKey: string
  /** What is there, as a cache has it; undefined if the server says that nothing is. */
  readonly current: Stored<KubeObject> | undefined
  /** Called, and waited for, before what is there is written to; what it throws keeps it from that. */
  readonly beforeChange: (uid: string) => Promise<void>
  readonly signal: AbortSignal
}

export interface WrittenChild {
  /** `repaired`: it was as wanted before, and somebody else changed it. */
  readonly result: 'applied' | 'repaired' | 'unchanged'
  readonly object: Stored<KubeObject>
}

/** A child as the server answered when it was last applied. */
interface AppliedChild {
  readonly uid: string
  readonly resourceVersion: string
  /** Of the object that was applied, its owner reference included. */
  readonly digest: string
  /** Of the answer; see stampOf. */
  readonly stamp: string
}

/** An object that is to be applied, before the uid is added that guards it. */
interface ApplyRequest {
  readonly resource: Resource
  readonly desired: Desired<KubeObject>
  readonly digest: string
}

/**
 * Writes single objects by server-side apply with force in one manager's name, where they are not as they were left. Whether an
 * object may be written to, the caller knows.
 */
export class ChildWriter {
  readonly #o: ChildWriterOptions
  /** By the key of the owner and the child; in memory only. The mark tells what an earlier process applied. */
  readonly #known = new Map<string, Map<string, AppliedChild>>()

  constructor(o: ChildWriterOptions) {
    this.#o = o
  }

  /** Forgets the children of an owner. */
  forget(ownerKey: string): void {
    this.#known.delete(ownerKey)
  }

  count({ kind }: Resource, result: ApplyOutcome): void {
    this.#o.metrics.applies.add({ kind, result })
  }

  /** @throws KubeError, isUidMismatch if what was there is gone. */
  async write({ resource, object: desired }: WantedChild, o: WriteOptions): Promise<WrittenChild> {
    const request = { resource, desired, digest: digestOf(desired) }
    const { current } = o
    if (current === undefined) return { result: 'applied', object: await this.#apply(request, o) }
    const known = this.#recall(request, o.ownerKey, current)
    // While the cache is behind, what the server answered is newer than what the cache shows.
    const isNewer = known !== undefined && isBehind(current, known)
    const { uid, resourceVersion } = isNewer ? known : current.metadata
    const isSameDesired = known?.digest === request.digest
    if (isSameDesired && (isNewer || known.stamp === stampOf(current, desired))) {
      this.count(resource, 'skipped')
      return { result: 'unchanged', object: current }
    }
    await o.beforeChange(uid)
    const object = await this.#apply(request, o, uid)
    // The server keeps the version of an object that it did not change.
    if (object.metadata.resourceVersion === resourceVersion) return { result: 'unchanged', object }
    return { result: isSameDesired ? 'repaired' : 'applied', object }
  }

  /** What was applied last: by this process, or by an earlier one that left its mark. */
  #recall(
    request: ApplyRequest,
    ownerKey: string,
    current: Stored<KubeObject>,
  ): AppliedChild | undefined {
    const known = this.#known.get(ownerKey)?.get(idOf(request))
    if (known !== undefined || !isAsApplied(current, request)) return known
    return this.#remember(request, ownerKey, current)
  }

  /** @param uid - of the object that is there; an apply with it does not create another. */
  async #apply(
    request: ApplyRequest,
    { ownerKey, signal }: WriteOptions,
    uid?: string,
  ): Promise<Stored<KubeObject>> {
    const marked = withMark(request)
    const metadata = { ...marked.metadata, ...(uid !== undefined && { uid }) }
    const options = { fieldManager: FIELD_MANAGER, signal }
    const object = await this.#o.client.apply(request.resource, { ...marked, metadata }, options)
    this.count(request.resource, 'applied')
    this.#remember(request, ownerKey, object)
    return object
  }

  /** @param object - the child as the server has it, with all that was applied. */
  #remember(request: ApplyRequest, ownerKey: string, object: Stored<KubeObject>): AppliedChild {
    const { uid, resourceVersion } = object.metadata
    const stamp = stampOf(object, request.desired)
    const child = { uid, resourceVersion, digest: request.digest, stamp }
    const children = this.#known.get(ownerKey) ?? new Map<string, AppliedChild>()
    this.#known.set(ownerKey, children.set(idOf(request), child))
    return child
  }

  /**
   * Deletes the very object that was seen, as it was seen: what changed since then is looked at again.
   *
   * @throws KubeError, a Conflict if it changed.
   */
  async delete(
    { resource, object }: { readonly resource: Resource; readonly object: Stored<KubeObject> },
    { ownerKey, signal }: Pick<WriteOptions, 'ownerKey' | 'signal'>,
  ): Promise<void> {
    const { uid, resourceVersion } = object.metadata
    this.#known.get(ownerKey)?.delete(childIdOf(resource, keyOf(object)))
    const preconditions = { uid, resourceVersion }
    const options = { preconditions, propagation: 'Background', signal } as const
    await unlessNotFound(this.#o.client.delete(resource, keyOf(object), options))
  }
}

function idOf({ resource, desired }: ApplyRequest): string {
  return childIdOf(resource, keyOf(desired))
}

import {
  type Client,
  type Desired,
  isNotFound,
  type KubeObject,
  keyOf,
  type ObjectKey,
  type Resource,
  type Stored,
} from '@tutti/kube'
import { type DigestedObject, isAsApplied, withMark } from './applied-mark.ts'
import { type AppliedChild, ApplyMemory } from './apply-memory.ts'
import { digestOf } from './canonical.ts'
import { childIdOf, FIELD_MANAGER, stampOf } from './children.ts'
import type { ApplyOutcome, RuntimeMetrics } from './metrics.ts'
import { isBehind } from './resource-version.ts'

export interface ChildWriterOptions {
  readonly client: Client
  readonly metrics: Pick<RuntimeMetrics, 'applies'>
}

/** Under what a child is remembered: its owner's key and uid, or names of its own if it has none. */
export interface Place {
  readonly key: string
  readonly uid: string
}

/** A child as it is to be applied. */
export interface WantedChild {
  readonly resource: Resource
  readonly object: Desired<KubeObject>
}

export interface WriteOptions {
  readonly place: Place
  /** What is there, as a cache has it; undefined if the server says that nothing is. */
  readonly current: Stored<KubeObject> | undefined
  /** Called, and waited for, before what is there is written to; what it throws keeps it from that. */
  readonly beforeChange?: (uid: string) => Promise<void>
  readonly signal: AbortSignal
}

export interface WrittenChild {
  /** `repaired`: it was as wanted before, and somebody else changed it. */
  readonly result: 'applied' | 'repaired' | 'unchanged'
  readonly object: Stored<KubeObject>
}

/**
 * Writes single objects by server-side apply with force in one manager's name, where they are not as they were left. Whether an
 * object may be written to, the caller knows.
 */
export class ChildWriter {
  readonly #o: ChildWriterOptions
  readonly #memory = new ApplyMemory()

  constructor(o: ChildWriterOptions) {
    this.#o = o
  }

  /** What was known of the children of a place is forgotten. */
  forget(placeKey: string): void {
    this.#memory.forget(placeKey)
  }

  count({ kind }: Resource, result: ApplyOutcome): void {
    this.#o.metrics.applies.add({ kind, result })
  }

  /** Caches hold only objects with our labels, and may be behind: whether something is there, the server knows. */
  async read(
    resource: Resource,
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<Stored<KubeObject> | undefined> {
    try {
      return await this.#o.client.get(resource, key, { signal })
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }

  /** @throws KubeError, isUidMismatch if what was there is gone. */
  async write({ resource, object: desired }: WantedChild, o: WriteOptions): Promise<WrittenChild> {
    const request = { resource, desired, digest: digestOf(desired) }
    const { current } = o
    if (current === undefined) return { result: 'applied', object: await this.#apply(request, o) }
    const known = this.#recall(request, { ...o, current })
    const newest = toNewest(current, known, desired)
    const isSameDesired = known?.digest === request.digest
    if (isSameDesired && known.stamp === newest.stamp) {
      this.count(resource, 'skipped')
      return { result: 'unchanged', object: current }
    }
    const { uid } = newest
    await o.beforeChange?.(uid)
    const object = await this.#apply(request, { ...o, uid })
    // The server keeps the version of an object that it did not change.
    const isNoop = object.metadata.resourceVersion === newest.resourceVersion
    if (isNoop) return { result: 'unchanged', object }
    return { result: isSameDesired ? 'repaired' : 'applied', object }
  }

  /** What was applied last: by this process, or by an earlier one that left its mark. */
  #recall(
    request: ApplyRequest,
    { place, current }: { readonly place: Place; readonly current: Stored<KubeObject> },
  ): AppliedChild | undefined {
    const known = this.#memory.get(place, idOf(request))
    if (known !== undefined || !isAsApplied(current, request)) return known
    return this.#remember(request, place, current)
  }

  /** @param o.uid - of the object that is there; an apply with it does not create another. */
  async #apply(
    request: ApplyRequest,
    { place, uid, signal }: WriteOptions & { readonly uid?: string },
  ): Promise<Stored<KubeObject>> {
    const marked = withMark(request)
    const guarded =
      uid === undefined ? marked : { ...marked, metadata: { ...marked.metadata, uid } }
    const options = { fieldManager: FIELD_MANAGER, signal }
    const object = await this.#o.client.apply(request.resource, guarded, options)
    this.count(request.resource, 'applied')
    this.#remember(request, place, object)
    return object
  }

  /** @param object - the child as the server has it, with all that was applied. */
  #remember(request: ApplyRequest, place: Place, object: Stored<KubeObject>): AppliedChild {
    const child = {
      uid: object.metadata.uid,
      resourceVersion: object.metadata.resourceVersion,
      digest: request.digest,
      stamp: stampOf(object, request.desired),
    }
    this.#memory.set(place, idOf(request), child)
    return child
  }

  /**
   * Deletes the very object that was seen, as it was seen: what changed since then is looked at again.
   *
   * @throws KubeError, a Conflict if it changed.
   */
  async delete(
    { resource, object }: { readonly resource: Resource; readonly object: Stored<KubeObject> },
    { place, signal }: Pick<WriteOptions, 'place' | 'signal'>,
  ): Promise<void> {
    const { uid, resourceVersion } = object.metadata
    this.#memory.drop(place, childIdOf(resource, keyOf(object)))
    try {
      await this.#o.client.delete(resource, keyOf(object), {
        preconditions: { uid, resourceVersion },
        propagation: 'Background',
        signal,
      })
    } catch (error) {
      if (!isNotFound(error)) throw error
    }
  }
}

/** A child as it is to be applied, before the uid is added that guards it. */
interface ApplyRequest extends DigestedObject {
  readonly resource: Resource
}

function idOf({ resource, desired }: ApplyRequest): string {
  return childIdOf(resource, keyOf(desired))
}

/** What is known of a child: while the cache is behind, what the server answered is newer than what the cache shows. */
function toNewest(
  current: Stored<KubeObject>,
  known: AppliedChild | undefined,
  desired: Desired<KubeObject>,
): Pick<AppliedChild, 'uid' | 'resourceVersion' | 'stamp'> {
  const { uid, resourceVersion } = current.metadata
  if (known !== undefined && isBehind(current, known)) return known
  return { uid, resourceVersion, stamp: stampOf(current, desired) }
}

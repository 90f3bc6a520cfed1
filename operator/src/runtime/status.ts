import {
  type Client,
  type Desired,
  isNotFound,
  type KubeObject,
  keyOf,
  type Resource,
  type Stored,
  toKeyString,
} from '@tutti/kube'
import { digestOf } from './canonical.ts'
import { FIELD_MANAGER } from './children.ts'
import type { RuntimeMetrics } from './metrics.ts'
import { isBehind } from './resource-version.ts'

/** An object whose status the operator owns. */
export interface WithStatus<S> extends KubeObject {
  readonly status?: S
}

/** `gone`: no object of that name is there any more. */
export type StatusResult = 'written' | 'unchanged' | 'gone'

interface WrittenStatus {
  readonly uid: string
  readonly resourceVersion: string
  /** Of what was written. */
  readonly digest: string
  /** What the server answered: with the conditions of others, if there are any. */
  readonly stored: unknown
}

export interface StatusWriterOptions {
  readonly client: Client
  readonly metrics: Pick<RuntimeMetrics, 'statusWrites'>
}

/** Writes statuses by server-side apply, only where they differ from what the server has. Call it once a reconcile. */
export class StatusWriter {
  readonly #o: StatusWriterOptions
  readonly #written = new Map<string, WrittenStatus>()

  constructor(o: StatusWriterOptions) {
    this.#o = o
  }

  /** The newest status that is known of an object: what the server answered last, while the cache is behind it. */
  current<S>(object: Stored<WithStatus<S>>): S | undefined {
    const written = this.#writtenOf(object)
    if (written === undefined || !isBehind(object, written)) return object.status
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the answer to a write of this very object, whose status is an S
    return written.stored as S
  }

  /**
   * Makes the status of the object what is wanted: all of it, as what is left out goes away. Conditions of other managers stay.
   *
   * @throws KubeError, a Conflict too if the object is another by now or has changed: the reconcile comes again with fresh data.
   */
  async write<S>(
    o: {
      readonly resource: Resource<WithStatus<S>>
      readonly object: Stored<WithStatus<S>>
      readonly status: S
    },
    { signal }: { readonly signal: AbortSignal },
  ): Promise<StatusResult> {
    const digest = digestOf(o.status)
    const result = this.#isStored(o.object, digest) ? 'unchanged' : await this.#put(o, signal)
    this.#o.metrics.statusWrites.add({ kind: o.resource.kind, result })
    return result
  }

  /** The object is gone. @param key - as its cache has it. */
  forget(key: string): void {
    this.#written.delete(key)
  }

  #isStored(object: Stored<WithStatus<unknown>>, digest: string): boolean {
    const written = this.#writtenOf(object)
    if (written !== undefined && isBehind(object, written)) return written.digest === digest
    const stored = digestOf(object.status ?? {})
    if (stored === digest) return true
    return written?.digest === digest && stored === digestOf(written.stored ?? {})
  }

  async #put<S>(
    o: {
      readonly resource: Resource<WithStatus<S>>
      readonly object: Stored<WithStatus<S>>
      readonly status: S
    },
    signal: AbortSignal,
  ): Promise<StatusResult> {
    const { uid } = o.object.metadata
    const key = keyOf(o.object)
    const written = this.#writtenOf(o.object)
    const isNewer = written !== undefined && isBehind(o.object, written)
    // A uid counts for nothing in a status. What changed since it was looked at is looked at anew.
    const { resourceVersion } = isNewer ? written : o.object.metadata
    const desired: Desired<KubeObject> & { status: S } = {
      metadata: { ...key, resourceVersion },
      status: o.status,
    }
    try {
      const answer = await this.#o.client.applyStatus<WithStatus<unknown>>(o.resource, desired, {
        fieldManager: FIELD_MANAGER,
        signal,
      })
      this.#written.set(toKeyString(key), {
        uid,
        resourceVersion: answer.metadata.resourceVersion,
        digest: digestOf(o.status),
        stored: answer.status,
      })
      return 'written'
    } catch (error) {
      if (!isNotFound(error)) throw error
      this.forget(toKeyString(key))
      return 'gone'
    }
  }

  #writtenOf(object: Stored<KubeObject>): WrittenStatus | undefined {
    const written = this.#written.get(toKeyString(keyOf(object)))
    return written?.uid === object.metadata.uid ? written : undefined
  }
}

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
import { digestOf, isSameJson } from './canonical.ts'
import { FIELD_MANAGER } from './children.ts'
import type { RuntimeMetrics } from './metrics.ts'
import { isBehind } from './resource-version.ts'

/** An object whose status the operator owns. */
export interface WithStatus<S> extends KubeObject {
  readonly status?: S
}

/** Outcome of a write; `gone`: an object of that name is no longer there. */
export type StatusResult = 'written' | 'unchanged' | 'gone'

interface WrittenStatus {
  readonly uid: string
  readonly resourceVersion: string
  /** Digest of the status that was written. */
  readonly digest: string
  /** The status that the server answered: with the conditions of others, if there are any. */
  readonly stored: unknown
}

interface StatusWrite<S> {
  readonly resource: Resource<WithStatus<S>>
  readonly object: Stored<WithStatus<S>>
  readonly status: S
}

export interface StatusWriterOptions {
  readonly client: Client
  readonly metrics: Pick<RuntimeMetrics, 'statusWrites'>
}

/** Writes statuses by server-side apply, and only those that differ from the server's. */
export class StatusWriter {
  readonly #options: StatusWriterOptions
  readonly #written = new Map<string, WrittenStatus>()

  constructor(o: StatusWriterOptions) {
    this.#options = o
  }

  /** Returns the newest known status of an object: the server's last answer while the cache is behind it, else the cached one. */
  current<S>(object: Stored<WithStatus<S>>): S | undefined {
    const written = this.#writtenOf(object)
    if (written === undefined || !isBehind(object, written)) return object.status
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the answer to a write of this very object, whose status is an S
    return written.stored as S
  }

  /**
   * Applies the whole status of an object, once a reconcile. Fields that are left out go away; conditions of other managers stay.
   *
   * @throws KubeError; it is a Conflict if the object changed since it was read. The reconcile is then retried with fresh data.
   */
  async write<S>(
    o: StatusWrite<S>,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<StatusResult> {
    const isStored = this.#isStored(o.object, o.status)
    const result = isStored ? 'unchanged' : await this.#put(o, signal)
    this.#options.metrics.statusWrites.add({ kind: o.resource.kind, result })
    return result
  }

  /** Forgets the last write to an object that is gone. @param key - the object's key in its cache. */
  forget(key: string): void {
    this.#written.delete(key)
  }

  #isStored(object: Stored<WithStatus<unknown>>, status: unknown): boolean {
    const written = this.#writtenOf(object)
    const isWritten = (): boolean => written?.digest === digestOf(status)
    if (written !== undefined && isBehind(object, written)) return isWritten()
    const { status: stored = {} } = object
    if (isSameJson(stored, status)) {
      // The cache tells as much from now on.
      if (written !== undefined) this.#written.delete(toKeyString(keyOf(object)))
      return true
    }
    return isWritten() && isSameJson(stored, written?.stored ?? {})
  }

  async #put<S>(o: StatusWrite<S>, signal: AbortSignal): Promise<StatusResult> {
    const written = this.#writtenOf(o.object)
    const isNewer = written !== undefined && isBehind(o.object, written)
    const { resourceVersion } = isNewer ? written : o.object.metadata
    try {
      await this.#send(o, resourceVersion, signal)
      return 'written'
    } catch (error) {
      if (!isNotFound(error)) throw error
      this.forget(toKeyString(keyOf(o.object)))
      return 'gone'
    }
  }

  /** @param resourceVersion - a uid counts for nothing in a status. */
  async #send<S>(
    { resource, object, status }: StatusWrite<S>,
    resourceVersion: string,
    signal: AbortSignal,
  ): Promise<void> {
    const key = keyOf(object)
    const desired: Desired<KubeObject> & { status: S } = {
      metadata: { ...key, resourceVersion },
      status,
    }
    const options = { fieldManager: FIELD_MANAGER, signal }
    const answer = await this.#options.client.applyStatus<WithStatus<unknown>>(
      resource,
      desired,
      options,
    )
    this.#written.set(toKeyString(key), {
      uid: object.metadata.uid,
      resourceVersion: answer.metadata.resourceVersion,
      digest: digestOf(status),
      stored: answer.status,
    })
  }

  #writtenOf(object: Stored<KubeObject>): WrittenStatus | undefined {
    const written = this.#written.get(toKeyString(keyOf(object)))
    return written?.uid === object.metadata.uid ? written : undefined
  }
}

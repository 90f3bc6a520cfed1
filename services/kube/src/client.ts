import type { CancelSignal } from '@tutti/errors'
import type { Desired, JsonObject, KubeObject, ObjectKey, Stored } from './object.ts'
import type { Resource } from './resource.ts'

export interface CallOptions {
  readonly signal?: CancelSignal | undefined
  /** Default: that of the transport. */
  readonly timeoutMs?: number | undefined
}

export interface WriteOptions extends CallOptions {
  /** In whose name fields are owned. */
  readonly fieldManager: string
}

export interface PatchOptions extends WriteOptions {
  readonly patch: JsonObject
  /** `scale` as kubectl and the HPA write it; absent for the object itself. */
  readonly subresource?: 'scale'
}

/** Which objects of a kind. */
export interface Selection {
  /** Absent: all namespaces. */
  readonly namespace?: string | undefined
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
}

export interface ListOptions extends CallOptions, Selection {
  /** Objects a page; default 500. */
  readonly pageSize?: number
  /** The server sends nothing but `metadata`: ask for a KubeObject then. */
  readonly isMetadataOnly?: boolean
}

export interface DeleteOptions extends CallOptions {
  /** Without both any object of that name goes. */
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string }
  readonly propagation?: 'Background'
}

export interface WatchOptions extends Selection {
  /** Where to go on; empty together with `isInitial`. */
  readonly resourceVersion: string
  /** True to have all objects first, and then a bookmark with the annotation `k8s.io/initial-events-end` (WatchList). */
  readonly isInitial?: boolean
  /** When the server is to end the watch. */
  readonly timeoutSeconds: number
  /** Longest time without a byte before the watch counts as dead. */
  readonly idleMs: number
  readonly signal?: CancelSignal | undefined
}

export interface ObjectList<T extends KubeObject> {
  readonly items: readonly Stored<T>[]
  /** From which a watch goes on. */
  readonly resourceVersion: string
}

/** A line of a watch. An ERROR of the server is thrown instead, as a KubeError. */
export type WatchEvent<T extends KubeObject> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: Stored<T> }
  | {
      readonly type: 'BOOKMARK'
      readonly resourceVersion: string
      /** True for the one after the initial objects. */
      readonly isInitialEnd: boolean
    }

export interface Watch<T extends KubeObject> {
  /** Once through; ends when the server ends the watch, throws a KubeError else. */
  readonly events: AsyncIterable<WatchEvent<T>>
  close(): void
}

/**
 * Reads and writes objects. Every method throws a KubeError (see its predicates); bodies of writes are checked strictly: a
 * field that the server does not know is an error, never dropped. Reads give objects as they come: fields that our types
 * lack are there, so what was read is never sent back whole, except to `replace` of kinds that are ours alone (Lease).
 */
export interface Client {
  get<T extends KubeObject>(
    resource: Resource<T>,
    key: ObjectKey,
    o?: CallOptions,
  ): Promise<Stored<T>>
  /** All objects, read page by page; isExpired if a page token expires meanwhile. */
  list<T extends KubeObject>(resource: Resource<T>, o?: ListOptions): Promise<ObjectList<T>>
  create<T extends KubeObject>(
    resource: Resource<T>,
    object: NoInfer<Desired<T>>,
    o: WriteOptions,
  ): Promise<Stored<T>>
  /**
   * Server-side apply: makes the object or changes what the manager owns of it; fields of other managers are taken over.
   * With `metadata.uid` it never makes one: an object that is gone is isUidMismatch.
   */
  apply<T extends KubeObject>(
    resource: Resource<T>,
    object: NoInfer<Desired<T>>,
    o: WriteOptions,
  ): Promise<Stored<T>>
  /** Server-side apply to the subresource `status`; an object that is gone is isNotFound. */
  applyStatus<T extends KubeObject>(
    resource: Resource<T>,
    object: NoInfer<Desired<T>>,
    o: WriteOptions,
  ): Promise<Stored<T>>
  /** Puts the whole object; its `metadata.resourceVersion` makes an object that changed meanwhile a Conflict. */
  replace<T extends KubeObject>(
    resource: Resource<T>,
    object: NoInfer<T>,
    o: WriteOptions,
  ): Promise<Stored<T>>
  mergePatch<T extends KubeObject>(
    resource: Resource<T>,
    key: ObjectKey,
    o: PatchOptions,
  ): Promise<Stored<T>>
  /** A precondition that does not hold is a Conflict. Resolves when the deletion is accepted; finalizers may hold it. */
  delete(resource: Resource, key: ObjectKey, o?: DeleteOptions): Promise<void>
  /** Resolves once the server has accepted the watch. */
  watch<T extends KubeObject>(resource: Resource<T>, o: WatchOptions): Promise<Watch<T>>
  /** True if the server knows the resource in that version (a CRD may be missing). */
  serves(resource: Resource, o?: CallOptions): Promise<boolean>
  /** Who issues the cluster's ServiceAccount tokens, as the server publishes it (`system:service-account-issuer-discovery`). */
  tokenIssuer(o?: CallOptions): Promise<TokenIssuer>
}

/** An issuer of tokens, and the JSON Web Keys that verify them. */
export interface TokenIssuer {
  /** As it stands in `iss`. */
  readonly url: string
  readonly keys: readonly Readonly<Record<string, unknown>>[]
}

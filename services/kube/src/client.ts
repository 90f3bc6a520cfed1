import type { CancelSignal } from '@tutti/errors'
import type { Desired, JsonObject, KubeObject, ObjectKey, Stored } from './object.ts'
import type { Resource } from './resource.ts'

export interface CallOptions {
  readonly signal?: CancelSignal | undefined
  /** Milliseconds that each try may take; the transport's limit if absent. */
  readonly timeoutMs?: number | undefined
}

export interface WriteOptions extends CallOptions {
  /** Name of the manager that owns the written fields. */
  readonly fieldManager: string
}

export interface PatchOptions extends WriteOptions {
  readonly patch: JsonObject
  /** Subresource to patch, `scale` as kubectl and the HPA write it; the object itself if absent. */
  readonly subresource?: 'scale'
}

/** Selects objects of a kind. An absent member selects all. */
export interface Selection {
  /** Absent: all namespaces. */
  readonly namespace?: string | undefined
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
}

export interface ListOptions extends CallOptions, Selection {
  /** Objects in one page; 500 if absent. */
  readonly pageSize?: number
  /** True to get `metadata` alone; the resource's type must then be KubeObject. */
  readonly isMetadataOnly?: boolean
}

export interface DeleteOptions extends CallOptions {
  /** Uid and version that the object must have; without them, any object of that name is deleted. */
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string }
  readonly propagation?: 'Background'
}

export interface WatchOptions extends Selection {
  /** Version after which the watch begins; empty together with `isInitial`. */
  readonly resourceVersion: string
  /** True to have all objects first, and then a bookmark with the annotation `k8s.io/initial-events-end` (WatchList). */
  readonly isInitial?: boolean
  /** Seconds after which the server ends the watch. */
  readonly timeoutSeconds: number
  /** Milliseconds without a byte, after which the watch counts as dead. */
  readonly idleMs: number
  readonly signal?: CancelSignal | undefined
}

export interface ObjectList<T extends KubeObject> {
  readonly items: readonly Stored<T>[]
  /** Version of the list, after which a watch may begin. */
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
  /** Events of the watch, to be read once. They end when the server ends the watch, and throw a KubeError if the watch fails. */
  readonly events: AsyncIterable<WatchEvent<T>>
  close(): void
}

/**
 * Reads and writes objects. Every method throws a KubeError; branch by its predicates. The server checks written bodies strictly:
 * a field that it does not know is an error. Objects that were read keep the fields that our types lack, so a caller never writes
 * them back whole, except with `replace` of a kind that nobody else writes (Lease).
 */
export interface Client {
  get<T extends KubeObject>(
    resource: Resource<T>,
    key: ObjectKey,
    o?: CallOptions,
  ): Promise<Stored<T>>
  /** Reads all objects, page by page. @throws KubeError isExpired if a page token expires meanwhile. */
  list<T extends KubeObject>(resource: Resource<T>, o?: ListOptions): Promise<ObjectList<T>>
  create<T extends KubeObject>(
    resource: Resource<T>,
    object: NoInfer<Desired<T>>,
    o: WriteOptions,
  ): Promise<Stored<T>>
  /**
   * Applies an object on the server's side: creates the object, or sets the given fields and takes them over from other managers.
   * With `metadata.uid` it never creates an object, and throws isUidMismatch if the object is gone.
   */
  apply<T extends KubeObject>(
    resource: Resource<T>,
    object: NoInfer<Desired<T>>,
    o: WriteOptions,
  ): Promise<Stored<T>>
  /** Applies the subresource `status` on the server's side. @throws KubeError isNotFound if the object is gone. */
  applyStatus<T extends KubeObject>(
    resource: Resource<T>,
    object: NoInfer<Desired<T>>,
    o: WriteOptions,
  ): Promise<Stored<T>>
  /** Writes the whole object. @throws KubeError isConflict if the object no longer has `metadata.resourceVersion`. */
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
  /**
   * Deletes an object. Resolves when the server accepts the deletion; finalizers may delay it.
   *
   * @throws KubeError isConflict if a precondition does not hold.
   */
  delete(resource: Resource, key: ObjectKey, o?: DeleteOptions): Promise<void>
  /** Watches objects. Resolves once the server has accepted the watch; the caller closes the watch. */
  watch<T extends KubeObject>(resource: Resource<T>, o: WatchOptions): Promise<Watch<T>>
  /** Tells whether the server knows the resource in its version; a CRD may be missing. */
  serves(resource: Resource, o?: CallOptions): Promise<boolean>
  /** Reads the issuer of the cluster's ServiceAccount tokens; needs the role `system:service-account-issuer-discovery`. */
  tokenIssuer(o?: CallOptions): Promise<TokenIssuer>
}

/** An issuer of tokens, and the JSON Web Keys that verify them. */
export interface TokenIssuer {
  /** URL of the issuer, as tokens have it in `iss`. */
  readonly url: string
  readonly keys: readonly Readonly<Record<string, unknown>>[]
}

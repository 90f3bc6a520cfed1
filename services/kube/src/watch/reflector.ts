import type { Clock, Logger } from '@tutti/chassis'
import type { Client, Selection } from '../client.ts'
import type { KubeObject, Stored } from '../object.ts'
import type { Resource } from '../resource.ts'

/** A change of an object on the API server. `key` is `namespace/name`, or the name alone. */
export type ReflectorEvent<T extends KubeObject> =
  | {
      readonly type: 'added'
      readonly key: string
      readonly object: Stored<T>
      /** True if it was there when the reflector first looked, so that handlers may take it as less urgent. */
      readonly isInitial: boolean
    }
  | {
      readonly type: 'updated'
      readonly key: string
      readonly object: Stored<T>
      /** The same object before: it has the same uid. */
      readonly old: Stored<T>
    }
  | {
      readonly type: 'deleted'
      readonly key: string
      /** As the server last had it. */
      readonly object: Stored<T>
      /** As it was held. */
      readonly old: Stored<T>
    }

/** @typeParam K - what is kept of an object. */
export interface ReflectorOptions<T extends KubeObject, K extends KubeObject = T>
  extends Selection {
  readonly client: Client
  readonly resource: Resource<T>
  readonly clock: Clock
  readonly log: Logger
  /** From 0 up to 1, not 1; Math.random if absent. */
  readonly random?: () => number
  /** Longest time without a byte before a watch counts as dead, in milliseconds; default 150000. */
  readonly idleMs?: number
  /** Reduces an object as the server sent it to what is kept of it, and no more; `withoutManagedFields` if absent. */
  readonly trim?: (object: Stored<T>) => Stored<K>
  /**
   * Called one after the other, without waiting; only enqueues. Not called before the first state is complete. What it throws
   * is logged.
   */
  readonly onEvent: (event: ReflectorEvent<K>) => void
  /** Called once, after the events of the first complete state. */
  readonly onSynced?: () => void
}

/** Counts of what a reflector did so far. */
export interface ReflectorStats {
  /** Complete states read, by WatchList or by pages. */
  readonly lists: number
  /** Watches opened. */
  readonly watches: number
  /** Lists and watches that failed. */
  readonly errors: number
  /** Objects held. */
  readonly objects: number
  /** Milliseconds since the server last said something, be it that nothing changed; since the start if it never has. */
  readonly silentMs: number
}

/** Holds a copy of a resource's objects and keeps it up to date, through every fault, until it is closed. */
export interface Reflector<T extends KubeObject> {
  /** By `namespace/name`, or the name alone. Only the reflector changes it, before it calls `onEvent`. */
  readonly objects: ReadonlyMap<string, Stored<T>>
  /** True from the first complete state on. */
  readonly hasSynced: boolean
  stats(): ReflectorStats
  /** Ends the watch; no event comes after the call. */
  close(): Promise<void>
}

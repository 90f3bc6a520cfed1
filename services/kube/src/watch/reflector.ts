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
      /** True if the first complete state had the object, so that handlers may treat it as less urgent. */
      readonly isInitial: boolean
    }
  | {
      readonly type: 'updated'
      readonly key: string
      readonly object: Stored<T>
      /** Object before the change; it has the same uid. */
      readonly old: Stored<T>
    }
  | {
      readonly type: 'deleted'
      readonly key: string
      /** Object as the server last had it. */
      readonly object: Stored<T>
      /** Object as the reflector had it. */
      readonly old: Stored<T>
    }

/** The options of a reflector. @typeParam K - type of the reduced objects that the reflector keeps. */
export interface ReflectorOptions<T extends KubeObject, K extends KubeObject = T>
  extends Selection {
  readonly client: Client
  readonly resource: Resource<T>
  readonly clock: Clock
  readonly log: Logger
  /** Random numbers, uniform in [0, 1); Math.random if absent. */
  readonly random?: () => number
  /** Longest time without a byte before a watch counts as dead, in milliseconds; default 150000. */
  readonly idleMs?: number
  /** Reduces an object from the server to the fields that the reflector keeps; `withoutManagedFields` if absent. */
  readonly trim?: (object: Stored<T>) => Stored<K>
  /**
   * Handles one event. It is called in order, from the first complete state on. It must return at once, as by adding a key to a
   * queue; an error that it throws is logged.
   */
  readonly onEvent: (event: ReflectorEvent<K>) => void
  /** Called once, after the events of the first complete state. */
  readonly onSynced?: () => void
}

/** Numbers about a reflector's work so far. */
export interface ReflectorStats {
  /** Number of complete states that were read, by WatchList or by pages. */
  readonly lists: number
  /** Watches opened. */
  readonly watches: number
  /** Lists and watches that failed. */
  readonly errors: number
  /** Objects held. */
  readonly objects: number
  /** Milliseconds since the server last sent anything, a bookmark too; since the start if it has sent nothing yet. */
  readonly silentMs: number
}

/** Holds a copy of a resource's objects and keeps it up to date, through every fault, until it is closed. */
export interface Reflector<T extends KubeObject> {
  /** Objects by `namespace/name`, or by the name alone. Only the reflector changes this map, before it calls `onEvent`. */
  readonly objects: ReadonlyMap<string, Stored<T>>
  /** True from the first complete state on. */
  readonly hasSynced: boolean
  stats(): ReflectorStats
  /** Ends the watch; no event comes after the call. */
  close(): Promise<void>
}

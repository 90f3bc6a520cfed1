import { ROUTER_NAME } from '@tutti/api'
import {
  isAlreadyExists,
  isConflict,
  isNamespaceTerminating,
  isNotFound,
  type KubeError,
  type KubeObject,
  keyOf,
  type Stored,
} from '@tutti/kube'
import { ROUTER, type RouterObject } from '../../api/kinds.ts'
import { FIELD_MANAGER, MANAGED_BY, type Owner } from '../../runtime/children.ts'
import type { Result } from '../../runtime/controller.ts'
import { isRefusal } from '../../runtime/refusal.ts'
import type { ControllerParts } from '../context.ts'
import { routerRefused } from './events.ts'

export interface RouterNeedOptions extends Pick<ControllerParts, 'client' | 'caches' | 'events'> {
  /** Milliseconds between two looks at a fault that only a person can repair; default TROUBLE_POLL_MS. */
  readonly troublePollMs?: number
}

/** The default interval between two looks at a fault that only a person can repair, such as a quota. */
export const TROUBLE_POLL_MS = 60_000

/** The result for a reconcile that found its caches behind the server: it looks again after a second. */
export const AGAIN: Result = { requeueAfterMs: 1000 }

/** A namespace may hold thousands, each of up to 1.5 MiB with its status. */
const METADATA = { isMetadataOnly: true } as const

/** Creates the Router of a namespace that needs one, and deletes it when nothing does. */
export class RouterNeed {
  readonly #options: RouterNeedOptions
  /** Namespaces whose caches were current at some time since this process began. Caches never go back. */
  readonly #current = new Set<string>()

  constructor(o: RouterNeedOptions) {
    this.#options = o
  }

  /** True if the namespace has Models or Ensembles that are not being deleted. */
  isUsed(namespace: string): boolean {
    const { models, ensembles } = this.#options.caches
    return [models, ensembles].some((cache) => cache.inNamespace(namespace).some(isKept))
  }

  /** Returns the oldest Model of the namespace, or without Models the oldest Ensemble. */
  oldest(namespace: string): Owner | undefined {
    const { models, ensembles } = this.#options.caches
    for (const cache of [models, ensembles]) {
      const kept: readonly Stored<KubeObject>[] = cache.inNamespace(namespace).filter(isKept)
      // There may be thousands.
      const [first] = kept
      if (first === undefined) continue
      const object = kept.reduce((one, next) => (isOlder(next, one) ? next : one), first)
      return { resource: cache.resource, object }
    }
    return undefined
  }

  /**
   * Checks with the server that the caches of the namespace's Models, Ensembles and Router are current. A process that has just
   * started may have read an old state. Once true, the answer stays true until `forget`.
   */
  async isCurrent(namespace: string, signal: AbortSignal): Promise<boolean> {
    if (this.#current.has(namespace)) return true
    const { client, caches } = this.#options
    const { models, ensembles, routers } = caches
    for (const cache of [models, ensembles, routers]) {
      const { items } = await client.list<KubeObject>(cache.resource, {
        ...METADATA,
        namespace,
        signal,
      })
      const known = cache.inNamespace(namespace)
      if (versionsOf(items) !== versionsOf(known)) return false
    }
    this.#current.add(namespace)
    return true
  }

  forget(namespace: string): void {
    this.#current.delete(namespace)
  }

  /** Creates the Router, if the server still has Models or Ensembles there. A refusal becomes an event. @throws KubeError */
  async create(namespace: string, signal: AbortSignal): Promise<Result> {
    const { client } = this.#options
    if (!(await this.#isUsedNow(namespace, signal))) return AGAIN
    const metadata = { namespace, name: ROUTER_NAME, labels: MANAGED_BY }
    try {
      const options = { fieldManager: FIELD_MANAGER, signal }
      await client.create(ROUTER, { metadata, spec: {} }, options)
    } catch (error) {
      if (isRefusal(error)) return this.#tellRefusal(namespace, error)
      if (!isAlreadyExists(error) && !isNamespaceTerminating(error)) throw error
    }
    return {}
  }

  /** Tells whether the namespace is used, as `isUsed` does, by asking the server. */
  async #isUsedNow(namespace: string, signal: AbortSignal): Promise<boolean> {
    const { client, caches } = this.#options
    for (const { resource } of [caches.models, caches.ensembles]) {
      const { items } = await client.list<KubeObject>(resource, { ...METADATA, namespace, signal })
      if (items.some(isKept)) return true
    }
    return false
  }

  /** Reports a refusal in an event, as there is no Router with conditions yet. */
  #tellRefusal(namespace: string, { message }: KubeError): Result {
    const regarding = this.oldest(namespace)?.object
    if (regarding !== undefined) this.#options.events.record(routerRefused(regarding, message))
    return { requeueAfterMs: this.#options.troublePollMs ?? TROUBLE_POLL_MS }
  }

  /** Deletes the Router, unless the server has Models or Ensembles there: a wrong deletion is an outage. @throws KubeError */
  async delete(router: Stored<RouterObject>, signal: AbortSignal): Promise<Result> {
    const { namespace = '', uid, resourceVersion } = router.metadata
    if (await this.#isUsedNow(namespace, signal)) return AGAIN
    try {
      const { client } = this.#options
      const preconditions = { uid, resourceVersion }
      await client.delete(ROUTER, keyOf(router), {
        preconditions,
        propagation: 'Background',
        signal,
      })
    } catch (error) {
      if (isConflict(error)) return AGAIN
      if (!isNotFound(error)) throw error
    }
    return {}
  }
}

/** True if an object is not being deleted. */
export function isKept({ metadata }: KubeObject): boolean {
  return metadata.deletionTimestamp === undefined
}

function isOlder(one: Stored<KubeObject>, other: Stored<KubeObject>): boolean {
  const { creationTimestamp: at, name } = one.metadata
  const { creationTimestamp: otherAt, name: otherName } = other.metadata
  return at < otherAt || (at === otherAt && name < otherName)
}

/** Returns a text that differs if a user has changed one of the objects. */
function versionsOf(objects: readonly Stored<KubeObject>[]): string {
  return objects
    .map(({ metadata: { uid, generation, deletionTimestamp } }) =>
      [uid, generation, deletionTimestamp ?? ''].join(' '),
    )
    .toSorted()
    .join()
}

import { ROUTER_NAME } from '@tutti/ensemble'
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
import { findEarlierSettings } from './earlier-settings.ts'
import { routerRefused } from './events.ts'

export interface RouterNeedOptions extends Pick<ControllerParts, 'client' | 'caches' | 'events'> {
  /** How often it is looked whether what only a person can set right is so; default 60 s. */
  readonly troublePollMs?: number
}

/** By then the caches have what they lack. */
export const AGAIN: Result = { requeueAfterMs: 1000 }

/** Which namespaces need a Router: makes it, and takes it away. */
export class RouterNeed {
  readonly #o: RouterNeedOptions
  /** Namespaces whose caches were current at some time since this process began: they are never older again. */
  readonly #current = new Set<string>()

  constructor(o: RouterNeedOptions) {
    this.#o = o
  }

  /** Whether the namespace has Models or Ensembles. */
  isUsed(namespace: string): boolean {
    const { models, ensembles } = this.#o.caches
    return [models, ensembles].some((cache) => cache.inNamespace(namespace).some(isKept))
  }

  /** The oldest Model of the namespace, or without Models the oldest Ensemble. */
  oldest(namespace: string): Owner | undefined {
    const { models, ensembles } = this.#o.caches
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
   * Whether the caches have what the Router of a namespace follows from as the server has it: a process that has just started may
   * have been given an old state.
   */
  async isCurrent(namespace: string, signal: AbortSignal): Promise<boolean> {
    if (this.#current.has(namespace)) return true
    const { client, caches } = this.#o
    const { models, ensembles, routers } = caches
    for (const cache of [models, ensembles, routers]) {
      const { items } = await client.list<KubeObject>(cache.resource, { namespace, signal })
      const known = cache.inNamespace(namespace)
      if (versionsOf(items) !== versionsOf(known)) return false
    }
    this.#current.add(namespace)
    return true
  }

  forget(namespace: string): void {
    this.#current.delete(namespace)
  }

  /** Makes the Router, for the operator to delete when nothing needs it any more, unless somebody gives it settings. @throws KubeError */
  async create(namespace: string, signal: AbortSignal): Promise<Result> {
    const { client } = this.#o
    if (!(await this.#isUsedNow(namespace, signal))) return AGAIN
    const annotations = await findEarlierSettings(client, namespace, { signal })
    const metadata = { namespace, name: ROUTER_NAME, labels: MANAGED_BY, annotations }
    try {
      const options = { fieldManager: FIELD_MANAGER, signal }
      await client.create(ROUTER, { metadata, spec: {} }, options)
    } catch (error) {
      if (isRefusal(error)) return this.#tellRefusal(namespace, error)
      if (!isAlreadyExists(error) && !isNamespaceTerminating(error)) throw error
    }
    return {}
  }

  /** As the server has it. */
  async #isUsedNow(namespace: string, signal: AbortSignal): Promise<boolean> {
    const { client, caches } = this.#o
    for (const { resource } of [caches.models, caches.ensembles]) {
      const { items } = await client.list<KubeObject>(resource, { namespace, signal })
      if (items.some(isKept)) return true
    }
    return false
  }

  /** There is no Router yet to say it. */
  #tellRefusal(namespace: string, { message }: KubeError): Result {
    const regarding = this.oldest(namespace)?.object
    if (regarding !== undefined) this.#o.events.record(routerRefused(regarding, message))
    return { requeueAfterMs: this.#o.troublePollMs ?? 60_000 }
  }

  /** The caches may be behind: what is deleted for nothing is an outage. @throws KubeError */
  async delete(router: Stored<RouterObject>, signal: AbortSignal): Promise<Result> {
    const { namespace = '', uid, resourceVersion } = router.metadata
    if (await this.#isUsedNow(namespace, signal)) return AGAIN
    try {
      const { client } = this.#o
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

/** It is not being deleted. */
export function isKept({ metadata }: KubeObject): boolean {
  return metadata.deletionTimestamp === undefined
}

function isOlder(one: Stored<KubeObject>, other: Stored<KubeObject>): boolean {
  const { creationTimestamp: at, name } = one.metadata
  const { creationTimestamp: otherAt, name: otherName } = other.metadata
  return at < otherAt || (at === otherAt && name < otherName)
}

/** Tells states of objects apart by what users change. */
function versionsOf(objects: readonly Stored<KubeObject>[]): string {
  return objects
    .map(({ metadata: { uid, generation, deletionTimestamp } }) =>
      [uid, generation, deletionTimestamp ?? ''].join(' '),
    )
    .toSorted()
    .join()
}

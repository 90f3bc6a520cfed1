import { assert } from '@tutti/errors'
import {
  type Client,
  isNamespaceTerminating,
  type KubeObject,
  keyOf,
  type Resource,
  type Stored,
  toKeyString,
} from '@tutti/kube'
import { ROUTER_KINDS, type RouterMember } from '../../resources/build-router-set.ts'
import { ROUTER_IDENTITY, ROUTER_LABEL_SELECTOR } from '../../resources/router-names.ts'
import type { ChildCache } from '../../runtime/apply.ts'
import { ChildWriter, type ChildWriterOptions, type Place } from '../../runtime/child-writer.ts'
import { childIdOf, controllerOf } from '../../runtime/children.ts'
import { toDeletion } from '../../runtime/deletion.ts'
import { isRefusal } from '../../runtime/refusal.ts'
import { INDEX } from '../caches.ts'

/** What an applier reads of the members of one kind: `Cache` has it, with the index of namespaces. */
export interface MemberCache extends Pick<ChildCache, 'resource' | 'get'> {
  byIndex(name: string, value: string): readonly Stored<KubeObject>[]
}

/** Why a router set is not as it is wanted; one line. */
export interface RouterProblem {
  readonly reason: 'RouterConflict' | 'RouterRefused' | 'Terminating'
  readonly message: string
  /** True if it ends by itself. */
  readonly isPassing?: boolean
}

/** A member of a router set as it is. */
interface FoundMember {
  readonly resource: Resource
  readonly object: Stored<KubeObject>
}

export interface RouterApplierOptions extends ChildWriterOptions {
  /** One of each kind that a router set has. */
  readonly caches: readonly MemberCache[]
}

type Signalled = { readonly signal: AbortSignal }

/**
 * Makes and deletes router sets. They have no owner that could rule them, so what is the operator's is told by labels; an object
 * of that name without them is somebody else's and left alone.
 */
export class RouterApplier {
  readonly #client: Client
  readonly #caches: readonly MemberCache[]
  readonly #writer: ChildWriter

  constructor(o: RouterApplierOptions) {
    this.#client = o.client
    this.#caches = o.caches
    this.#writer = new ChildWriter(o)
  }

  /**
   * Makes the set of a namespace what is wanted. A member that is refused does not hold up the others, but one that depends on it
   * may not work. What is not wanted any more goes once all that is wanted is there.
   *
   * @returns the first problem that only a person can set right, else the first that passes.
   * @throws KubeError for what is worth another try; 'terminating' namespaces are no error.
   */
  async sync(
    namespace: string,
    members: readonly RouterMember[],
    o: Signalled,
  ): Promise<RouterProblem | undefined> {
    const problems: RouterProblem[] = []
    for (const member of members) {
      try {
        const problem = await this.#ensure(namespace, member, o)
        if (problem !== undefined) problems.push(problem)
      } catch (error) {
        if (isNamespaceTerminating(error)) return undefined
        problems.push(this.#toRefusal(member, error))
      }
    }
    const [first] = problems
    if (first !== undefined) return problems.find(({ isPassing }) => isPassing !== true) ?? first
    const wanted = new Set(members.map((one) => childIdOf(one.resource, keyOf(one.object))))
    const unwanted = this.#membersOf(namespace).filter(
      ({ resource, object }) => !wanted.has(childIdOf(resource, keyOf(object))),
    )
    await this.#deleteAll(namespace, unwanted, o)
    return undefined
  }

  /** Deletes the set of a namespace, as the server has it: a cache may be behind. @throws KubeError */
  async remove(namespace: string, o: Signalled): Promise<void> {
    // Pods first: they use the rest.
    for (const resource of ROUTER_KINDS.toReversed()) {
      const { items } = await this.#client.list(resource, {
        namespace,
        labelSelector: ROUTER_LABEL_SELECTOR,
        ...o,
      })
      const found = items.map((object) => ({ resource, object }))
      await this.#deleteAll(namespace, found, o)
    }
    this.#writer.forget(namespace)
  }

  async #ensure(
    namespace: string,
    member: RouterMember,
    { signal }: Signalled,
  ): Promise<RouterProblem | undefined> {
    const { resource, object: desired } = member
    const key = keyOf(desired)
    const cached = this.#cacheOf(resource).get(toKeyString(key))
    const current = cached ?? (await this.#writer.read(resource, key, signal))
    if (current !== undefined && !isOurs(current)) {
      this.#writer.count(resource, 'conflict')
      const message = `${nameOf(resource, desired)} is there already and is not the operator's: delete or rename it`
      return { reason: 'RouterConflict', message }
    }
    if (current?.metadata.deletionTimestamp !== undefined) {
      const { finalizers = [] } = current.metadata
      const deletion = toDeletion({ resource, key, finalizers })
      return deletion && { reason: 'Terminating', ...deletion }
    }
    await this.#writer.write(member, { place: toPlace(namespace), current, signal })
    return undefined
  }

  /** @throws the error, if it is worth another try. */
  #toRefusal({ resource, object }: RouterMember, error: unknown): RouterProblem {
    if (!isRefusal(error)) throw error
    this.#writer.count(resource, 'error')
    return { reason: 'RouterRefused', message: `${nameOf(resource, object)}: ${error.message}` }
  }

  #membersOf(namespace: string): readonly FoundMember[] {
    return this.#caches.flatMap((cache) =>
      cache
        .byIndex(INDEX.namespace, namespace)
        .map((object) => ({ resource: cache.resource, object })),
    )
  }

  async #deleteAll(
    namespace: string,
    found: readonly FoundMember[],
    { signal }: Signalled,
  ): Promise<void> {
    for (const member of found) {
      const { object } = member
      if (!isOurs(object) || object.metadata.deletionTimestamp !== undefined) continue
      await this.#writer.delete(member, { place: toPlace(namespace), signal })
    }
  }

  #cacheOf(resource: Resource): MemberCache {
    const cache = this.#caches.find((one) => one.resource.kind === resource.kind)
    assert(cache !== undefined, `the applier has no cache of ${resource.plural}`)
    return cache
  }
}

/** A set belongs to its namespace, where an applier's memory has an owner. */
function toPlace(namespace: string): Place {
  return { key: namespace, uid: namespace }
}

function isOurs(object: Stored<KubeObject>): boolean {
  const labels = object.metadata.labels ?? {}
  return (
    controllerOf(object) === undefined &&
    Object.entries(ROUTER_IDENTITY).every(([key, value]) => labels[key] === value)
  )
}

function nameOf({ kind }: Resource, { metadata }: Pick<KubeObject, 'metadata'>): string {
  return `${kind} "${metadata.name}"`
}

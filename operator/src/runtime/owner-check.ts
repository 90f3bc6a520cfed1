import {
  type Client,
  isNotFound,
  type KubeObject,
  keyOf,
  type Resource,
  type Stored,
} from '@tutti/kube'
import type { Owner } from './children.ts'

/** `behind`: the server has a newer one than the cache; what was decided may be out of date. */
export type OwnerState = 'present' | 'gone' | 'behind'

/** The owner is not as the cache showed it. */
export class OwnerMoved extends Error {
  override readonly name = 'OwnerMoved'
  readonly state: OwnerState

  constructor(state: OwnerState) {
    super(`the owner is ${state}`)
    this.state = state
  }
}

/**
 * Asks the server for the owner before something is made or deleted for it, once for all that follows: a cache may be behind,
 * far behind after a restart, and a child that is made for a deleted owner would stay.
 */
export class OwnerCheck {
  readonly #client: Client
  readonly #owner: Owner
  readonly #signal: AbortSignal
  #isDone = false

  constructor(client: Client, owner: Owner, signal: AbortSignal) {
    this.#client = client
    this.#owner = owner
    this.#signal = signal
  }

  /** @throws OwnerMoved */
  async ensure(): Promise<void> {
    if (this.#isDone) return
    const state = await ownerState(this.#client, this.#owner, this.#signal)
    if (state !== 'present') throw new OwnerMoved(state)
    this.#isDone = true
  }
}

/** What the server has of an owner, compared with what a cache showed. @throws KubeError */
export async function ownerState(
  client: Client,
  owner: Owner,
  signal: AbortSignal,
): Promise<OwnerState> {
  const { resource, object, isLive = false } = owner
  const live = await readOwner(client, { resource, object }, signal)
  if (live === undefined) return 'gone'
  return isLive || live.metadata.generation === object.metadata.generation ? 'present' : 'behind'
}

/**
 * Looks at an owner as a cache has it and, if the server has a newer one, once more as the server has it. An owner that is edited
 * faster than a cache hears of it would get nothing otherwise, for as long as that lasts.
 *
 * @param look - throws OwnerMoved if it wants to change something for an owner that has moved.
 * @returns undefined if the owner is gone.
 */
export async function followOwner<T extends KubeObject, R>(
  owner: { readonly resource: Resource<T>; readonly object: Stored<T> },
  look: (object: Stored<T>, isLive: boolean) => Promise<R>,
  { client, signal }: { readonly client: Client; readonly signal: AbortSignal },
): Promise<R | undefined> {
  try {
    try {
      return await look(owner.object, false)
    } catch (error) {
      if (!(error instanceof OwnerMoved)) throw error
    }
    const live = await readOwner(client, owner, signal)
    return live && (await look(live, true))
  } catch (error) {
    if (error instanceof OwnerMoved) return undefined
    throw error
  }
}

/** As the server has it; undefined if it is gone, is being deleted, or is another by now. */
async function readOwner<T extends KubeObject>(
  client: Client,
  { resource, object }: { readonly resource: Resource<T>; readonly object: Stored<T> },
  signal: AbortSignal,
): Promise<Stored<T> | undefined> {
  try {
    const live = await client.get(resource, keyOf(object), { signal })
    const { uid, deletionTimestamp } = live.metadata
    return uid === object.metadata.uid && deletionTimestamp === undefined ? live : undefined
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

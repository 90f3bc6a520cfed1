import { type Client, isNotFound, keyOf } from '@tutti/kube'
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
  { resource, object }: Owner,
  signal: AbortSignal,
): Promise<OwnerState> {
  try {
    const { metadata } = await client.get(resource, keyOf(object), { signal })
    if (metadata.uid !== object.metadata.uid) return 'gone'
    if (metadata.deletionTimestamp !== undefined) return 'gone'
    return metadata.generation === object.metadata.generation ? 'present' : 'behind'
  } catch (error) {
    if (isNotFound(error)) return 'gone'
    throw error
  }
}

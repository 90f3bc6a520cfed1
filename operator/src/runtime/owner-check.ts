import { type Client, keyOf, unlessNotFound } from '@tutti/kube'
import type { Owner } from './children.ts'
import type { Result } from './controller.ts'

/** The owner is not as the cache showed it: it is gone, or the cache is behind. What was decided may be out of date. */
export class OwnerMoved extends Error {
  override readonly name = 'OwnerMoved'
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

  /** @throws OwnerMoved; KubeError */
  async ensure(): Promise<void> {
    if (this.#isDone) return
    const { resource, object } = this.#owner
    const { metadata } = object
    const got = this.#client.get(resource, keyOf(object), { signal: this.#signal })
    const live = (await unlessNotFound(got))?.metadata
    const isSame =
      live?.uid === metadata.uid && live.deletionTimestamp === metadata.deletionTimestamp
    if (!isSame) throw new OwnerMoved('the owner is gone')
    if (live.generation !== metadata.generation) throw new OwnerMoved('the owner has been edited')
    this.#isDone = true
  }
}

/** The cache hears of it before that, as a rule. */
const AGAIN_MS = 5000

/** One look at an owner. One that has moved ends it, and is looked at again once the cache has heard of that. */
export async function untilOwnerMoves(look: () => Promise<Result>): Promise<Result> {
  try {
    return await look()
  } catch (error) {
    if (error instanceof OwnerMoved) return { requeueAfterMs: AGAIN_MS }
    throw error
  }
}

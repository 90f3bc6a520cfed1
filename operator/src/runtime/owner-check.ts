import { type Client, keyOf, unlessNotFound } from '@tutti/kube'
import type { Owner } from './children.ts'
import type { Result } from './controller.ts'

/** The error for an owner that is no longer as the cache showed it: it is gone or was edited. Decisions may be out of date. */
export class OwnerMoved extends Error {
  override readonly name = 'OwnerMoved'
}

/**
 * Checks with the server that an owner is still as the cache showed it, before its children are written or deleted. The cache may
 * be behind, and a child created for a deleted owner would stay. One successful check holds for the whole pass.
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

  /** Checks the owner, unless a check succeeded before. @throws OwnerMoved if the owner is gone or edited; KubeError */
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

/** Runs one pass over an owner. If it throws OwnerMoved, the owner is looked at again after 5 s, when the cache knows more. */
export async function untilOwnerMoves(look: () => Promise<Result>): Promise<Result> {
  try {
    return await look()
  } catch (error) {
    if (error instanceof OwnerMoved) return { requeueAfterMs: AGAIN_MS }
    throw error
  }
}

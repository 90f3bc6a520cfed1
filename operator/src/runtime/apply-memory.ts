/** A child as the server answered when it was last applied. */
export interface AppliedChild {
  readonly uid: string
  readonly resourceVersion: string
  /** Of the object that was applied. */
  readonly digest: string
  /** Of the answer; see stampOf. */
  readonly stamp: string
}

/** What was applied, by owner and child; in memory only. What an earlier process applied is known by the mark that it left. */
export class ApplyMemory {
  readonly #owners = new Map<string, { uid: string; children: Map<string, AppliedChild> }>()

  get(owner: { key: string; uid: string }, childId: string): AppliedChild | undefined {
    const known = this.#owners.get(owner.key)
    return known?.uid === owner.uid ? known.children.get(childId) : undefined
  }

  set(owner: { key: string; uid: string }, childId: string, child: AppliedChild): void {
    const known = this.#owners.get(owner.key)
    if (known?.uid === owner.uid) known.children.set(childId, child)
    else {
      this.#owners.set(owner.key, { uid: owner.uid, children: new Map([[childId, child]]) })
    }
  }

  drop(owner: { key: string; uid: string }, childId: string): void {
    const known = this.#owners.get(owner.key)
    if (known?.uid === owner.uid) known.children.delete(childId)
  }

  forget(ownerKey: string): void {
    this.#owners.delete(ownerKey)
  }
}

import type { ReplicaAddress } from './tensor-bearer.ts'

/** A model version that a replica serves right now. */
export interface ServedRevision {
  readonly model: string
  readonly version: number
  readonly revision: string
}

interface Member {
  readonly address: ReplicaAddress
  revisions: ReadonlySet<string>
  /** Envelopes that this process has sent there and that are not answered. */
  inFlight: number
  draining: boolean
}

/** Knows the step replicas: who serves which revision, and how busy each is with our own envelopes. */
export class StepDirectory {
  readonly #members = new Map<string, Member>()
  readonly #byRevision = new Map<string, Member[]>()
  /** Where the search among equally busy replicas starts, so that ties take turns. */
  #turn = 0

  /** Adds the replica or replaces what is known of it. */
  announce(address: ReplicaAddress, served: readonly ServedRevision[]): void {
    const revisions = new Set(served.map(revisionKey))
    const known = this.#members.get(address.replica)
    if (known === undefined) {
      this.#members.set(address.replica, { address, revisions, inFlight: 0, draining: false })
    } else {
      known.revisions = revisions
    }
    this.#reindex()
  }

  /** No new envelopes go there; what is in flight stays counted. */
  drain(replica: string): void {
    const member = this.#members.get(replica)
    if (member !== undefined) member.draining = true
    this.#reindex()
  }

  remove(replica: string): void {
    this.#members.delete(replica)
    this.#reindex()
  }

  /** True if some replica that takes new work serves exactly this revision. */
  isServed(revision: ServedRevision): boolean {
    return this.#byRevision.has(revisionKey(revision))
  }

  /**
   * Takes a place at the least busy replica that serves the revision, or returns undefined if none does.
   * The caller calls `release` once, when the envelope is answered or given up.
   *
   * @param avoid - replicas that are taken only if there is no other.
   */
  acquire(
    revision: ServedRevision,
    avoid?: ReadonlySet<string>,
  ): { readonly address: ReplicaAddress; readonly release: () => void } | undefined {
    const members = this.#byRevision.get(revisionKey(revision))
    if (members === undefined) return undefined
    this.#turn = (this.#turn + 1) % members.length
    let best: Member | undefined
    for (let i = 0; i < members.length; i++) {
      const member = members[(this.#turn + i) % members.length]
      if (member === undefined) continue
      if (best === undefined || isBetter(member, best, avoid)) best = member
    }
    if (best === undefined) return undefined
    const chosen = best
    chosen.inFlight += 1
    return { address: chosen.address, release: () => (chosen.inFlight -= 1) }
  }

  #reindex(): void {
    this.#byRevision.clear()
    for (const member of this.#members.values()) {
      if (member.draining) continue
      for (const revision of member.revisions) {
        const members = this.#byRevision.get(revision)
        if (members === undefined) this.#byRevision.set(revision, [member])
        else members.push(member)
      }
    }
  }
}

function isBetter(a: Member, b: Member, avoid: ReadonlySet<string> | undefined): boolean {
  if (avoid !== undefined) {
    const isAvoided = avoid.has(a.address.replica)
    if (isAvoided !== avoid.has(b.address.replica)) return !isAvoided
  }
  return a.inFlight < b.inFlight
}

/** A space occurs in no model name, so that the parts cannot run into one another. */
function revisionKey(served: ServedRevision): string {
  return `${served.model} ${served.version} ${served.revision}`
}

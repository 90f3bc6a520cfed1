import {
  type AnnouncedLoad,
  type Replica,
  type ReplicaAddress,
  ReplicaPlaces,
  revisionKey,
  type ServedRevision,
} from './replica-places.ts'
import { forgive } from './replica-work.ts'

/** Decides whether a revision that a replica serves may be asked of it. */
export type MayUse = (replica: string, served: ServedRevision) => boolean

/** A replica as the directory has it. */
export type KnownReplica = Readonly<Pick<Member, 'isDraining' | 'isSuspect' | 'inFlight' | 'load'>>

interface Member extends Replica {
  served: readonly ServedRevision[]
  /** Keys of those that may be used. */
  revisions: ReadonlySet<string>
  isDraining: boolean
  isSuspect: boolean
}

/** Knows the step replicas: who serves which revision, and how busy each is. */
export class StepDirectory {
  /** Places of the replicas that take new work. */
  readonly places = new ReplicaPlaces()
  readonly #members = new Map<string, Member>()
  #waiting = new Set<() => void>()
  #mayUse: MayUse | undefined

  /** Asks of replicas, from now on, only what `mayUse` allows. Call `review` when its answers change. */
  restrict(mayUse: MayUse): void {
    this.#mayUse = mayUse
    this.review()
  }

  /** Asks `mayUse` again about the revisions of a replica, or of all if absent. */
  review(replica?: string): void {
    for (const member of this.#members.values()) {
      if (replica !== undefined && member.address.replica !== replica) continue
      member.revisions = this.#usable(member.address, member.served)
    }
    this.#reindex()
  }

  #usable({ replica }: ReplicaAddress, served: readonly ServedRevision[]): ReadonlySet<string> {
    const mayUse = this.#mayUse
    const usable = mayUse === undefined ? served : served.filter((one) => mayUse(replica, one))
    return new Set(usable.map(revisionKey))
  }

  /** Adds the replica or replaces what is known of it. Without a load, the last one that it reported stands. */
  announce(address: ReplicaAddress, served: readonly ServedRevision[], load?: AnnouncedLoad): void {
    const revisions = this.#usable(address, served)
    const known = this.#members.get(address.replica)
    if (known === undefined) {
      const idle = { inFlight: 0, inFlightThen: 0, workUs: 0, slowness: 1, hasAnswered: false }
      const fresh = { ...idle, isDraining: false, isSuspect: false }
      this.#members.set(address.replica, { address, served, revisions, load, ...fresh })
    } else {
      known.served = served
      known.revisions = revisions
      if (load !== undefined) this.report(address.replica, load)
    }
    this.#reindex()
  }

  /** Replaces the load of a replica by what it says now. */
  report(replica: string, load: AnnouncedLoad): void {
    const member = this.#members.get(replica)
    if (member === undefined) return
    member.load = load
    member.inFlightThen = member.inFlight
    if (member.inFlight === 0) forgive(member)
  }

  /** Sends no new envelopes to a replica while it drains; what is in flight stays counted. */
  drain(replica: string, isDraining = true): void {
    const member = this.#members.get(replica)
    if (member === undefined || member.isDraining === isDraining) return
    member.isDraining = isDraining
    this.#reindex()
  }

  /** Sends no new envelopes to a replica while it is suspect. */
  suspect(replica: string, isSuspect: boolean): void {
    const member = this.#members.get(replica)
    if (member === undefined || member.isSuspect === isSuspect) return
    member.isSuspect = isSuspect
    this.#reindex()
  }

  /** Finds what is known of a replica; undefined if nothing is. */
  find(replica: string): KnownReplica | undefined {
    return this.#members.get(replica)
  }

  /** Tells whether a replica takes new work: it is known and does not drain. */
  takesWork(replica: string): boolean {
    return this.#members.get(replica)?.isDraining === false
  }

  remove(replica: string): void {
    if (this.#members.delete(replica)) this.#reindex()
  }

  /** True if some replica that takes new work serves exactly this revision. */
  isServed(revision: ServedRevision): boolean {
    return this.places.byRevision.has(revisionKey(revision))
  }

  /**
   * Waits for a suspect that serves the revision to recover or go.
   *
   * @param callback - called once, as soon as any replica begins or ceases to take work.
   * @returns stops waiting; undefined if no suspect serves the revision, so that there is nothing to wait for.
   */
  whenDecided(revision: ServedRevision, callback: () => void): (() => void) | undefined {
    const key = revisionKey(revision)
    const isOpen = [...this.#members.values()].some(
      ({ isSuspect, isDraining, revisions }) => isSuspect && !isDraining && revisions.has(key),
    )
    if (!isOpen) return undefined
    this.#waiting.add(callback)
    return () => this.#waiting.delete(callback)
  }

  #reindex(): void {
    const byRevision = new Map<string, Member[]>()
    for (const member of this.#members.values()) {
      if (member.isDraining || member.isSuspect) continue
      for (const revision of member.revisions) {
        const members = byRevision.get(revision)
        if (members === undefined) byRevision.set(revision, [member])
        else members.push(member)
      }
    }
    this.places.byRevision = byRevision
    this.#wake()
  }

  /** Wakes all that wait. Whoever waits again waits for the next change. */
  #wake(): void {
    if (this.#waiting.size === 0) return
    const waiting = this.#waiting
    this.#waiting = new Set()
    for (const callback of waiting) callback()
  }
}

import type { ModelTarget } from '@tutti/tensor'

/** Names one replica of a step process. A restarted process is another replica. */
export interface ReplicaAddress {
  readonly replica: string
}

/** A model version that a replica serves right now. */
export type ServedRevision = ModelTarget

/** How busy a replica says that it is, with the envelopes of all its callers. */
export interface AnnouncedLoad {
  readonly inFlight: number
  readonly queued: number
  readonly freeSlots: number
  /** Bytes of tensors that it would take now. */
  readonly freeBytes: number
}

/** Which of the revisions that a replica serves may be asked of it. */
export type MayUse = (replica: string, served: ServedRevision) => boolean

interface Member {
  readonly address: ReplicaAddress
  served: readonly ServedRevision[]
  /** Keys of those that may be used. */
  revisions: ReadonlySet<string>
  /** Envelopes that this process has sent there and that are not answered. */
  inFlight: number
  /** Undefined for a replica of this process, which announces none. */
  load: AnnouncedLoad | undefined
  /** `inFlight` when the load was announced: what was sent since, it cannot count. */
  inFlightThen: number
  isDraining: boolean
  isSuspect: boolean
}

/** Knows the step replicas: who serves which revision, and how busy each is. */
export class StepDirectory {
  readonly #members = new Map<string, Member>()
  readonly #byRevision = new Map<string, Member[]>()
  /** Where the search among equally busy replicas starts, so that ties take turns. */
  #turn = 0
  #waiting = new Set<() => void>()
  #mayUse: MayUse | undefined

  /** From now on only what `mayUse` allows is asked of replicas; `review` follows when it changes its mind. */
  restrict(mayUse: MayUse): void {
    this.#mayUse = mayUse
    this.review()
  }

  /** Asks again what may be used of the replica, of all if absent. */
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
      const fresh = { inFlight: 0, inFlightThen: 0, isDraining: false, isSuspect: false }
      this.#members.set(address.replica, { address, served, revisions, load, ...fresh })
    } else {
      known.served = served
      known.revisions = revisions
      if (load !== undefined) this.report(address.replica, load)
    }
    this.#reindex()
  }

  /** Replaces what the replica says of its load. */
  report(replica: string, load: AnnouncedLoad): void {
    const member = this.#members.get(replica)
    if (member === undefined) return
    member.load = load
    member.inFlightThen = member.inFlight
  }

  /** No new envelopes go there unless it takes it back; what is in flight stays counted. */
  drain(replica: string, isDraining = true): void {
    const member = this.#members.get(replica)
    if (member === undefined || member.isDraining === isDraining) return
    member.isDraining = isDraining
    this.#reindex()
  }

  /** No new envelopes go there while it is suspect. */
  suspect(replica: string, isSuspect: boolean): void {
    const member = this.#members.get(replica)
    if (member === undefined || member.isSuspect === isSuspect) return
    member.isSuspect = isSuspect
    this.#reindex()
  }

  /** False for a replica that drains or is not known. */
  takesWork(replica: string): boolean {
    return this.#members.get(replica)?.isDraining === false
  }

  remove(replica: string): void {
    if (this.#members.delete(replica)) this.#reindex()
  }

  /** True if some replica that takes new work serves exactly this revision. */
  isServed(revision: ServedRevision): boolean {
    return this.#byRevision.has(revisionKey(revision))
  }

  /**
   * Takes a place at the least busy replica that serves the revision, or returns undefined if none does: one with free slots as it
   * announced, less what we have sent there since, before one without, then by our own envelopes in flight, then by the announced load, then in turn. One without
   * free slots is taken if no other is there: the announcement is some time old, and the replica refuses what it cannot take.
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

  /**
   * Waits while all that serve the revision are suspect.
   *
   * @param callback - called once, as soon as who takes work has changed in any way.
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
    this.#byRevision.clear()
    for (const member of this.#members.values()) {
      if (member.isDraining || member.isSuspect) continue
      for (const revision of member.revisions) {
        const members = this.#byRevision.get(revision)
        if (members === undefined) this.#byRevision.set(revision, [member])
        else members.push(member)
      }
    }
    this.#wake()
  }

  /** Those who wait again wait for the next change. */
  #wake(): void {
    if (this.#waiting.size === 0) return
    const waiting = this.#waiting
    this.#waiting = new Set()
    for (const callback of waiting) callback()
  }
}

function isBetter(one: Member, other: Member, avoid: ReadonlySet<string> | undefined): boolean {
  if (avoid === undefined) return isLessBusy(one, other)
  const isAvoided = avoid.has(one.address.replica)
  if (isAvoided !== avoid.has(other.address.replica)) return !isAvoided
  return isLessBusy(one, other)
}

/**
 * Our own envelopes count before what is announced: they are exact and of now, and several callers who each even out their own
 * load even out the whole. The announcement, which is up to a heartbeat old, decides between equals.
 */
function isLessBusy(one: Member, other: Member): boolean {
  const isFree = hasFreeSlots(one)
  if (isFree !== hasFreeSlots(other)) return isFree
  if (one.inFlight !== other.inFlight) return one.inFlight < other.inFlight
  return announced(one) < announced(other)
}

/** Less what was sent since: else all requests up to the next heartbeat would go to the one replica that announced free slots. */
function hasFreeSlots({ load, inFlight, inFlightThen }: Member): boolean {
  if (load === undefined) return true
  return load.freeSlots > Math.max(0, inFlight - inFlightThen) && load.freeBytes > 0
}

function announced({ load }: Member): number {
  return load === undefined ? 0 : load.inFlight + load.queued
}

/** A space occurs in no model name, so that the parts cannot run into one another. */
function revisionKey(served: ServedRevision): string {
  return `${served.model} ${served.version} ${served.revision}`
}

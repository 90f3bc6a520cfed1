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

/** A replica, as far as its choice depends on it. */
export interface Replica {
  readonly address: ReplicaAddress
  /**
   * Envelopes that this process has sent there and that are not answered: each is a place. The one that took it gives it back with
   * `inFlight -= 1`, once, when the envelope is answered or given up.
   */
  inFlight: number
  /** Undefined for a replica of this process, which announces none. */
  load: AnnouncedLoad | undefined
  /** `inFlight` when the load was announced: what was sent since, it cannot count. */
  inFlightThen: number
}

/** The replicas that take new work, by what they serve: chooses one for each request. */
export class ReplicaPlaces {
  /** By the key of the revision. Where there is one replica, there is nothing to choose. */
  byRevision: ReadonlyMap<string, readonly Replica[]> = new Map()
  /** Where the search among equally busy replicas starts, so that ties take turns. */
  #turn = 0

  /**
   * Takes a place at the least busy replica that serves the revision, or returns undefined if none does: one with free slots as it
   * announced, less what we have sent there since, before one without, then by our own envelopes in flight, then by the announced load, then in turn. One without
   * free slots is taken if no other is there: the announcement is some time old, and the replica refuses what it cannot take.
   *
   * @param avoid - replicas that are taken only if there is no other.
   */
  acquire(revision: ServedRevision, avoid?: ReadonlySet<string>): Replica | undefined {
    const members = this.byRevision.get(revisionKey(revision))
    if (members === undefined) return undefined
    this.#turn = (this.#turn + 1) % members.length
    let best: Replica | undefined
    for (let i = 0; i < members.length; i++) {
      const member = members[(this.#turn + i) % members.length]
      if (member === undefined) continue
      if (best === undefined || isBetter(member, best, avoid)) best = member
    }
    if (best !== undefined) best.inFlight += 1
    return best
  }
}

function isBetter(one: Replica, other: Replica, avoid: ReadonlySet<string> | undefined): boolean {
  if (avoid === undefined) return isLessBusy(one, other)
  const isAvoided = avoid.has(one.address.replica)
  if (isAvoided !== avoid.has(other.address.replica)) return !isAvoided
  return isLessBusy(one, other)
}

/**
 * Our own envelopes count before what is announced: they are exact and of now, and several callers who each even out their own
 * load even out the whole. The announcement, which is up to a heartbeat old, decides between equals.
 */
function isLessBusy(one: Replica, other: Replica): boolean {
  const isFree = hasFreeSlots(one)
  if (isFree !== hasFreeSlots(other)) return isFree
  if (one.inFlight !== other.inFlight) return one.inFlight < other.inFlight
  return announced(one) < announced(other)
}

/** Less what was sent since: else all requests up to the next heartbeat would go to the one replica that announced free slots. */
function hasFreeSlots({ load, inFlight, inFlightThen }: Replica): boolean {
  if (load === undefined) return true
  return load.freeSlots > Math.max(0, inFlight - inFlightThen) && load.freeBytes > 0
}

function announced({ load }: Replica): number {
  return load === undefined ? 0 : load.inFlight + load.queued
}

/** A space occurs in no model name, so that the parts cannot run into one another. */
export function revisionKey(served: ServedRevision): string {
  return `${served.model} ${served.version} ${served.revision}`
}

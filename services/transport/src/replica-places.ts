import type { ModelTarget } from '@tutti/tensor'
import { type ReplicaSpeed, ReplicaWork } from './replica-work.ts'

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
export interface Replica extends ReplicaSpeed {
  readonly address: ReplicaAddress
  /**
   * Envelopes that this process has sent there and that are not answered: each is a place. The one that took it gives it back
   * with `inFlight -= 1`, once, when the envelope is answered or given up.
   */
  inFlight: number
  /**
   * Whole microseconds that these are expected to take. The one that gives a place back subtracts the work of its request too.
   */
  workUs: number
  /** Undefined for a replica of this process, which announces none. */
  load: AnnouncedLoad | undefined
  /** `inFlight` when the load was announced, which cannot count what was sent since. */
  inFlightThen: number
}

/** Replicas that are compared for one request: 64 cost 0.5 us, a thousand would cost 14. */
const MOST_COMPARED = 64

/** Slowness that differs by less counts as equal. */
const SLOWNESS_STEP = 1.5

/** The replicas that take new work, by what they serve: chooses one for each request. */
export class ReplicaPlaces {
  /** Times that requests take, as their answers say. */
  readonly work = new ReplicaWork()
  /** Replicas, by the key of the revision that they serve. */
  byRevision: ReadonlyMap<string, readonly Replica[]> = new Map()
  /** Index at which the search among equally busy replicas starts, so that ties take turns. */
  #turn = 0

  /**
   * Takes a place at a replica that serves the revision, or returns undefined if none does: one with free slots as it announced,
   * less what we have sent there since, that is not slow, before any other; then the one that is expected to be done first, by
   * our own work there and the request's, times its slowness; then by the announced load, then in turn. One without free slots is
   * taken if no other is there: the announcement is some time old, and the replica refuses what it cannot take. Of many some are
   * compared.
   *
   * @param o.avoid - replicas that are taken only if there is no other.
   * @param o.workUs - whole microseconds that the request is expected to take; 1 if absent.
   */
  acquire(revision: ServedRevision, o: AcquireOptions = {}): Replica | undefined {
    const members = this.byRevision.get(revisionKey(revision))
    return members && this.#take(members, o)
  }

  #take(members: readonly Replica[], o: AcquireOptions): Replica | undefined {
    const best = this.#leastBusy(members, o)
    if (best === undefined) return undefined
    best.inFlight += 1
    best.workUs += o.workUs ?? 0
    return best
  }

  /**
   * Takes a place, as `acquire` does, at a replica that serves several revisions.
   *
   * @param keys - of the revisions.
   */
  acquireCommon(keys: readonly string[], o: AcquireOptions = {}): Replica | undefined {
    const [first = [], ...others] = keys.map((key) => this.byRevision.get(key) ?? [])
    const common = first.filter((replica) => others.every((members) => members.includes(replica)))
    return common.length === 0 ? undefined : this.#take(common, o)
  }

  #leastBusy(members: readonly Replica[], { workUs = 1, avoid }: AcquireOptions) {
    const compared = Math.min(members.length, MOST_COMPARED)
    this.#turn = (this.#turn + (compared < members.length ? compared : 1)) % members.length
    let best: Replica | undefined
    let bestRank = 0
    let bestUs = 0
    for (let i = 0; i < compared; i++) {
      const member = members[(this.#turn + i) % members.length]
      if (member === undefined) continue
      const rank = rankOf(member, avoid)
      const doneUs = (member.workUs + workUs) * slownessOf(member)
      if (best !== undefined) {
        // Our own work is exact and of now, and callers who each even out their own even out the whole. What is announced is old.
        const more = rank - bestRank || doneUs - bestUs || member.inFlight - best.inFlight
        if ((more || announced(member) - announced(best)) >= 0) continue
      }
      best = member
      bestRank = rank
      bestUs = doneUs
    }
    return best
  }
}

export interface AcquireOptions {
  readonly avoid?: ReadonlySet<string> | undefined
  readonly workUs?: number
}

/** Ranks a replica; the least rank is best. */
function rankOf(member: Replica, avoid: ReadonlySet<string> | undefined): number {
  return (avoid?.has(member.address.replica) ? 2 : 0) + (hasFreeSlots(member) ? 0 : 1)
}

/**
 * Rounds the slowness of a replica to steps, so that equal replicas take turns. Replicas that are faster than the mean count as
 * equal, because short requests look fast.
 */
function slownessOf({ slowness }: Replica): number {
  if (slowness < SLOWNESS_STEP) return 1
  return SLOWNESS_STEP ** Math.round(Math.log(slowness) / Math.log(SLOWNESS_STEP))
}

/**
 * Tells whether a replica has free slots, less the requests sent since its heartbeat: else all requests up to the next heartbeat
 * would go to the one replica that announced free slots.
 */
function hasFreeSlots({ load, inFlight, inFlightThen, slowness }: Replica): boolean {
  if (load === undefined) return true
  if (slowness >= SLOWNESS_STEP) return false
  return load.freeSlots > Math.max(0, inFlight - inFlightThen) && load.freeBytes > 0
}

function announced({ load }: Replica): number {
  return load === undefined ? 0 : load.inFlight + load.queued
}

/** Makes the key of a revision. No model name has a space, so two revisions never have one key. */
export function revisionKey(served: ServedRevision): string {
  return `${served.model} ${served.version} ${served.revision}`
}

import { ServeError } from '@tutti/errors'
import type { Heartbeat } from '@tutti/protocol'

/** The settings that membership needs. */
export interface MembershipSettings {
  readonly heartbeatMs: number
  readonly suspectAfterMissed: number
  readonly deadAfterMs: number
  readonly graceMs: number
  readonly tickMs: number
  readonly maxPeers: number
  readonly maxRevisions: number
}

/** How a peer went: in order, after everything that it had to say, or it is not heard any more. */
export type Departure = 'left' | 'dead'

/** What is said of the peers as their state changes. */
export interface MembershipListener {
  /** A peer appeared, or said something new of itself. */
  heard(heartbeat: Heartbeat, what: 'new' | 'changed' | 'load'): void
  /** It has missed heartbeats: no new work. Ask it directly. */
  suspected(peer: string): void
  /** A suspect is heard again. */
  recovered(peer: string): void
  /** It said so, or it is dead. What is in flight there has failed. */
  gone(peer: string, error: ServeError, how: Departure): void
}

interface Member {
  readonly peer: string
  /** Undefined for one that we are to work for and of which no heartbeat has come yet. */
  heartbeat: Heartbeat | undefined
  heardAt: number
  isSuspect: boolean
}

/**
 * Knows the other peers by their heartbeats. Two levels: *suspect* after missed heartbeats, *dead* if a direct question finds
 * nobody, or after a longer silence. While the broker is away, or this process itself has stood still, nobody is judged.
 * Without clock and I/O.
 */
export class Membership {
  readonly #settings: MembershipSettings
  readonly #listener: MembershipListener
  readonly #members = new Map<string, Member>()
  /** That all of them announce. */
  #revisions = 0
  #isFrozen = false
  /** Nobody is judged before. */
  #judgeFrom = 0
  #tickedAt: number | undefined

  constructor(settings: MembershipSettings, listener: MembershipListener) {
    this.#settings = settings
    this.#listener = listener
  }

  /** Peers of a role that are neither dead nor gone. */
  peers(role: Heartbeat['role']): string[] {
    return [...this.#members.values()]
      .filter(({ heartbeat }) => heartbeat?.role === role)
      .map(({ peer }) => peer)
  }

  /** The last heartbeat of a peer that is neither dead nor gone. */
  latest(peer: string): Heartbeat | undefined {
    return this.#members.get(peer)?.heartbeat
  }

  /**
   * Takes a heartbeat. One that the last has overtaken changes nothing.
   *
   * @returns false, and nothing is taken, if there is no room for another peer or for what it announces.
   */
  heartbeat(now: number, heartbeat: Heartbeat): boolean {
    const { peer } = heartbeat
    if (isFarewell(heartbeat)) {
      this.#remove(peer, `peer '${peer}' has left`, 'left')
      return true
    }
    const before = this.#members.get(peer)?.heartbeat
    if (before !== undefined && isOvertaken(before, heartbeat)) return true
    const more = revisionsOf(heartbeat) - revisionsOf(before)
    if (more > 0 && this.#revisions + more > this.#settings.maxRevisions) return false
    const member = this.#member(now, peer)
    if (member === undefined) return false
    this.#revisions += more
    member.heartbeat = heartbeat
    this.#alive(now, member)
    this.#listener.heard(heartbeat, whatIsNew(before, heartbeat))
    return true
  }

  /** The peer has answered a direct question. */
  answered(now: number, peer: string): void {
    const member = this.#members.get(peer)
    if (member !== undefined) this.#alive(now, member)
  }

  /** We are to take work of the peer, so it should be heard from now on. @returns false if there is no room for another peer. */
  expect(now: number, peer: string): boolean {
    const member = this.#member(now, peer)
    if (member !== undefined) this.#alive(now, member)
    return member !== undefined
  }

  /** The broker knows nobody who listens for it. */
  unreachable(peer: string): void {
    if (!this.#isFrozen) this.#remove(peer, `peer '${peer}' does not listen`)
  }

  /** A suspect has not answered a direct question. */
  unanswered(peer: string): void {
    if (this.#isFrozen || this.#members.get(peer)?.isSuspect !== true) return
    this.#remove(peer, `peer '${peer}' does not answer`)
  }

  /** The broker is away: nobody is judged until `thaw`. */
  freeze(): void {
    this.#isFrozen = true
  }

  /** The broker is back: everybody gets a grace to be heard. */
  thaw(now: number): void {
    if (!this.#isFrozen) return
    this.#isFrozen = false
    this.#forgive(now)
  }

  tick(now: number): void {
    const { tickMs, heartbeatMs, suspectAfterMissed, deadAfterMs } = this.#settings
    // This process stood still (a stopped process, a long collection): it has not listened, so it cannot judge.
    const suspectAfterMs = (suspectAfterMissed + 0.5) * heartbeatMs
    const since = this.#tickedAt
    if (since !== undefined && now - since > suspectAfterMs + tickMs) this.#forgive(now)
    this.#tickedAt = now
    if (this.#isFrozen || now < this.#judgeFrom) return
    for (const member of this.#members.values()) {
      const silentMs = now - member.heardAt
      if (silentMs >= deadAfterMs) {
        this.#remove(member.peer, `peer '${member.peer}' has been silent for ${deadAfterMs} ms`)
      } else if (silentMs >= suspectAfterMs && !member.isSuspect) {
        member.isSuspect = true
        this.#listener.suspected(member.peer)
      }
    }
  }

  #forgive(now: number): void {
    this.#judgeFrom = now + this.#settings.graceMs
    for (const member of this.#members.values()) member.heardAt = now
  }

  #member(now: number, peer: string): Member | undefined {
    const known = this.#members.get(peer)
    if (known !== undefined) return known
    if (this.#members.size >= this.#settings.maxPeers) return undefined
    const member = { peer, heartbeat: undefined, heardAt: now, isSuspect: false }
    this.#members.set(peer, member)
    return member
  }

  #alive(now: number, member: Member): void {
    member.heardAt = now
    if (!member.isSuspect) return
    member.isSuspect = false
    this.#listener.recovered(member.peer)
  }

  #remove(peer: string, text: string, how: Departure = 'dead'): void {
    const member = this.#members.get(peer)
    if (member === undefined) return
    this.#members.delete(peer)
    this.#revisions -= revisionsOf(member.heartbeat)
    const error = new ServeError('STEP_UNAVAILABLE', text, { details: { replica: peer } })
    this.#listener.gone(peer, error, how)
  }
}

function revisionsOf(heartbeat: Heartbeat | undefined): number {
  return heartbeat?.revisions.length ?? 0
}

/** The last heartbeat of a peer that closes in order: it is draining and serves nothing and nobody. */
function isFarewell(heartbeat: Heartbeat): boolean {
  const { draining, inFlight, freeSlots, revisions, bearers } = heartbeat
  return (
    draining && inFlight === 0 && freeSlots === 0 && revisions.length === 0 && bearers.length === 0
  )
}

/** How far a heartbeat can be behind one that overtook it, or is the same: on the way for four seconds. */
const OVERTAKEN = 16

/**
 * A number that is further behind is not late: the one before it was not the peer's own, and believing that one would shut
 * out the peer for ever.
 */
function isOvertaken(before: Heartbeat, after: Heartbeat): boolean {
  return after.sequence <= before.sequence && after.sequence > before.sequence - OVERTAKEN
}

function whatIsNew(before: Heartbeat | undefined, after: Heartbeat): 'new' | 'changed' | 'load' {
  if (before === undefined) return 'new'
  const isSame =
    before.description === after.description &&
    before.draining === after.draining &&
    before.role === after.role &&
    isSameRevisions(before.revisions, after.revisions)
  return isSame ? 'load' : 'changed'
}

/** What a peer describes names its revisions, but one who forges its heartbeats may name others under the same digest. */
function isSameRevisions(one: Heartbeat['revisions'], other: Heartbeat['revisions']): boolean {
  return (
    one.length === other.length &&
    one.every((revision, i) => revision.every((part, j) => part === other[i]?.[j]))
  )
}

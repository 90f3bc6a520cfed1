import { ServeError } from '@tutti/errors'
import type { Heartbeat, SentHeartbeat } from '@tutti/protocol'
import type { EndpointSettings } from '../endpoint-settings.ts'

/** Number of missed heartbeats after which a member is suspect; a long garbage collection costs one or two. */
export const SUSPECT_AFTER_MISSED = 3
/** Time after a reconnect in which the heartbeats of all members should come. */
const GRACE_MS = 1000

/** The settings that membership needs. */
export type MembershipSettings = Pick<
  EndpointSettings,
  'heartbeatMs' | 'deadAfterMs' | 'maxMembers' | 'maxRevisions'
>

/** How a member went: `left` after it said farewell, the last of all that it said; `dead` if it is no longer heard. */
export type Departure = 'left' | 'dead'

/**
 * How a heartbeat differs from the member's last: there was none, it says something else of the member, or at most another load.
 */
export type Novelty = 'new' | 'changed' | 'load'

/** The receiver of changes in the state of other members. */
export interface MembershipListener {
  /** Called with each heartbeat that is taken. */
  heard(heartbeat: Heartbeat, what: Novelty): void
  /** Called when a member has missed heartbeats: it should get no new work, and be asked directly. */
  suspected(member: string): void
  /** Called when a suspect is heard again. */
  recovered(member: string): void
  /** Called when a member has left or is dead: what is in flight there has failed. */
  gone(member: string, error: ServeError, how: Departure): void
}

interface Presence {
  readonly member: string
  /** Undefined for one that we are to work for and of which no heartbeat has come yet. */
  heartbeat: Heartbeat | undefined
  heardAt: number
  isSuspect: boolean
}

/**
 * Knows the other members by their heartbeats. Two levels: *suspect* after missed heartbeats, *dead* if a direct question finds
 * no responder, or after a longer silence. While the broker is away no member is suspected. Without clock and I/O: `now` is
 * ListenedTime's, in which the time in which this process stood still does not count.
 */
export class Membership {
  readonly #settings: MembershipSettings
  readonly #listener: MembershipListener
  readonly #members = new Map<string, Presence>()
  /** Number of revisions that all members announce. */
  #revisions = 0
  #isFrozen = false
  /** Time of the last tick. */
  #now = 0
  /** No member is suspected before. */
  #suspectFrom = 0

  constructor(settings: MembershipSettings, listener: MembershipListener) {
    this.#settings = settings
    this.#listener = listener
  }

  /** Lists the members of a role that are neither dead nor gone. */
  members(role: Heartbeat['role']): string[] {
    return [...this.#members.values()]
      .filter(({ heartbeat }) => heartbeat?.role === role)
      .map(({ member }) => member)
  }

  /** Finds the last heartbeat of a member that is neither dead nor gone. */
  latest(member: string): Heartbeat | undefined {
    return this.#members.get(member)?.heartbeat
  }

  /**
   * Takes a heartbeat. One that a later heartbeat of its member has overtaken changes nothing.
   *
   * @returns false, and takes nothing, if that would be one member or one revision too many.
   */
  heartbeat(said: SentHeartbeat): boolean {
    const { member } = said
    if (isFarewell(said)) {
      this.#remove(member, `member '${member}' has left`, 'left')
      return true
    }
    const before = this.#members.get(member)?.heartbeat
    if (before !== undefined && isOvertaken(before, said)) return true
    const { revisions = before?.revisions } = said
    // It is there, and says soon what it serves.
    if (revisions === undefined) return this.expect(member)
    const heartbeat = { ...said, revisions }
    const more = revisionsOf(heartbeat) - revisionsOf(before)
    if (more > 0 && this.#revisions + more > this.#settings.maxRevisions) return false
    const presence = this.#presence(member)
    if (presence === undefined) return false
    this.#revisions += more
    presence.heartbeat = heartbeat
    this.#alive(presence)
    this.#listener.heard(heartbeat, whatIsNew(before, heartbeat))
    return true
  }

  /** Notes that the member has answered a direct question: it is there. */
  answered(member: string): void {
    const presence = this.#members.get(member)
    if (presence !== undefined) this.#alive(presence)
  }

  /** Watches a member from now on, because its work is to be taken. @returns false if there are too many members. */
  expect(member: string): boolean {
    const presence = this.#presence(member)
    if (presence !== undefined) this.#alive(presence)
    return presence !== undefined
  }

  /** Counts a member as dead, because the broker has no responder for it. */
  unreachable(member: string): void {
    if (!this.#isFrozen) this.#remove(member, `member '${member}' does not listen`)
  }

  /** Suspects no member until `thaw`: the broker is away. */
  freeze(): void {
    this.#isFrozen = true
  }

  /** Gives every member a grace to be heard, after which it may be suspected again: the broker is back. */
  thaw(): void {
    if (!this.#isFrozen) return
    this.#isFrozen = false
    this.#suspectFrom = this.#now + GRACE_MS
    for (const presence of this.#members.values()) presence.heardAt = this.#now
  }

  /**
   * Suspects members that have been silent, and counts as dead those that were silent longer. @param now - ListenedTime's, in
   * milliseconds.
   */
  tick(now: number): void {
    const { heartbeatMs, deadAfterMs } = this.#settings
    this.#now = now
    if (this.#isFrozen || now < this.#suspectFrom) return
    const suspectAfterMs = (SUSPECT_AFTER_MISSED + 0.5) * heartbeatMs
    for (const presence of this.#members.values()) {
      const silentMs = now - presence.heardAt
      if (silentMs >= deadAfterMs) {
        this.#remove(
          presence.member,
          `member '${presence.member}' has been silent for ${deadAfterMs} ms`,
        )
      } else if (silentMs >= suspectAfterMs && !presence.isSuspect) {
        presence.isSuspect = true
        this.#listener.suspected(presence.member)
      }
    }
  }

  #presence(member: string): Presence | undefined {
    const known = this.#members.get(member)
    if (known !== undefined) return known
    if (this.#members.size >= this.#settings.maxMembers) return undefined
    const presence = { member, heartbeat: undefined, heardAt: this.#now, isSuspect: false }
    this.#members.set(member, presence)
    return presence
  }

  #alive(presence: Presence): void {
    presence.heardAt = this.#now
    if (!presence.isSuspect) return
    presence.isSuspect = false
    this.#listener.recovered(presence.member)
  }

  #remove(member: string, text: string, how: Departure = 'dead'): void {
    const presence = this.#members.get(member)
    if (presence === undefined) return
    this.#members.delete(member)
    this.#revisions -= revisionsOf(presence.heartbeat)
    const error = new ServeError('STEP_UNAVAILABLE', text, { details: { replica: member } })
    this.#listener.gone(member, error, how)
  }
}

function revisionsOf(heartbeat: Heartbeat | undefined): number {
  return heartbeat?.revisions.length ?? 0
}

/** Tells whether a heartbeat is the last of a member that closes in order: it is draining and serves nothing. */
function isFarewell(heartbeat: SentHeartbeat): boolean {
  const { draining, inFlight, freeSlots, revisions, transports } = heartbeat
  return (
    draining &&
    inFlight === 0 &&
    freeSlots === 0 &&
    revisions?.length === 0 &&
    transports.length === 0
  )
}

/** How far a heartbeat can be behind one that overtook it, or is the same: on the way for four seconds. */
const OVERTAKEN = 16

/**
 * Tells whether a heartbeat is merely late. One that is further behind is not late: the heartbeat before it was not the member's
 * own, and to believe that one would shut out the member for ever.
 */
function isOvertaken(before: Heartbeat, after: SentHeartbeat): boolean {
  return after.sequence <= before.sequence && after.sequence > before.sequence - OVERTAKEN
}

/** Tells how a heartbeat differs from the one before. @param before - the member's last; undefined if this is its first. */
export function whatIsNew(before: Heartbeat | undefined, after: Heartbeat): Novelty {
  if (before === undefined) return 'new'
  const isSame =
    before.description === after.description &&
    before.draining === after.draining &&
    before.role === after.role &&
    isSameRevisions(before.revisions, after.revisions)
  return isSame ? 'load' : 'changed'
}

/**
 * Compares revisions one by one: a member's description names them, but one who forges its heartbeats may name others under the
 * same digest.
 */
export function isSameRevisions(
  one: Heartbeat['revisions'],
  other: Heartbeat['revisions'],
): boolean {
  if (one === other) return true
  return (
    one.length === other.length &&
    one.every((revision, i) => revision.every((part, j) => part === other[i]?.[j]))
  )
}

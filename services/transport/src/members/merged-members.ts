import type { ServeError } from '@tutti/errors'
import type { Heartbeat } from '@tutti/protocol'
import { type Novelty, whatIsNew } from './membership.ts'

/** What a role does with what it hears of other members. */
export interface MemberListener {
  heard(heartbeat: Heartbeat, what: Novelty): void
  suspected(member: string, isSuspect: boolean): void
  /** @param endCalls - fails what is in flight there; to be called once, when nothing new goes there any more. */
  gone(member: string, error: ServeError, endCalls: () => void): void
}

/** What is heard over one access, and whether its broker is there. */
export interface AccessListener extends MemberListener {
  linked(isUp: boolean): void
}

/** What one access knows of a member. */
interface Seen {
  heartbeat: Heartbeat
  isSuspect: boolean
}

interface Member {
  /** By access; undefined where it is not. */
  readonly seen: (Seen | undefined)[]
  /** The access over which it is called. */
  via: number
  /** What the listener knows of it. */
  told: { heartbeat: Heartbeat | undefined; isSuspect: boolean }
}

/**
 * Makes one member of each that is heard over several accesses: what it says is what it says over the first access where it can be
 * reached, and there it is called. Without clock and I/O.
 */
export class MergedMembers {
  readonly #listener: MemberListener
  readonly #isUp: boolean[]
  readonly #members = new Map<string, Member>()

  /** @param accesses - how many; the first is preferred. */
  constructor(listener: MemberListener, accesses: number) {
    this.#listener = listener
    this.#isUp = Array.from({ length: accesses }, () => false)
  }

  /** Members of a role that are neither dead nor gone everywhere. */
  members(role: Heartbeat['role']): string[] {
    return [...this.#members]
      .filter(([, { told }]) => told.heartbeat?.role === role)
      .map(([member]) => member)
  }

  /** The access over which the member is called; the first for one that is not known. */
  via(member: string): number {
    return this.#members.get(member)?.via ?? 0
  }

  /** Where what the access hears goes. */
  access(index: number): AccessListener {
    return {
      heard: (heartbeat) => this.#heard(index, heartbeat),
      suspected: (member, isSuspect) => this.#suspected(index, member, isSuspect),
      gone: (member, error, endCalls) => this.#gone(index, member, error, endCalls),
      linked: (isUp) => {
        this.#isUp[index] = isUp
        for (const [member, known] of this.#members) this.#settle(member, known)
      },
    }
  }

  #heard(index: number, heartbeat: Heartbeat): void {
    const { member } = heartbeat
    const known = this.#members.get(member) ?? {
      seen: this.#isUp.map(() => undefined),
      via: index,
      told: { heartbeat: undefined, isSuspect: false },
    }
    this.#members.set(member, known)
    const seen = known.seen[index]
    if (seen === undefined) known.seen[index] = { heartbeat, isSuspect: false }
    else seen.heartbeat = heartbeat
    this.#settle(member, known)
  }

  #suspected(index: number, member: string, isSuspect: boolean): void {
    const known = this.#members.get(member)
    const seen = known?.seen[index]
    if (known === undefined || seen === undefined) return
    seen.isSuspect = isSuspect
    this.#settle(member, known)
  }

  /**
   * What is in flight over this access has failed, whether or not the member is at another. What was heard over one that is down
   * keeps no member: nothing would say that it has gone there too. It is new again once it is heard.
   */
  #gone(index: number, member: string, error: ServeError, endCalls: () => void): void {
    const known = this.#members.get(member)
    if (known === undefined) return endCalls()
    known.seen[index] = undefined
    if (known.seen.some((seen, i) => seen !== undefined && this.#isUp[i] === true)) {
      this.#settle(member, known)
      endCalls()
      return
    }
    this.#members.delete(member)
    this.#listener.gone(member, error, endCalls)
  }

  /** Chooses the access anew and tells the listener what that changes. */
  #settle(member: string, known: Member): void {
    const { seen, told } = known
    const good = seen.findIndex((at, i) => at?.isSuspect === false && this.#isUp[i] === true)
    known.via = good >= 0 ? good : seen.findIndex((at) => at !== undefined)
    const heartbeat = seen[known.via]?.heartbeat
    if (heartbeat !== undefined && heartbeat !== told.heartbeat) {
      const what = whatIsNew(told.heartbeat, heartbeat)
      told.heartbeat = heartbeat
      this.#listener.heard(heartbeat, what)
    }
    const isSuspect = good < 0 && this.#isOut(known)
    if (isSuspect === told.isSuspect) return
    told.isSuspect = isSuspect
    this.#listener.suspected(member, isSuspect)
  }

  /**
   * Suspect, or beyond a broker that is away while another is there: then others can answer. Without any broker every call says so
   * itself.
   */
  #isOut({ seen, via }: Member): boolean {
    return seen[via]?.isSuspect === true || (this.#isUp[via] === false && this.#isUp.includes(true))
  }
}

import type { Heartbeat, SentHeartbeat } from '@tutti/protocol'

/** A member that speaks no version of the protocol that this process speaks: it is not called. */
export interface ForeignMember {
  readonly member: string
  readonly role: Heartbeat['role']
  readonly oldestProtocol: number
  readonly newestProtocol: number
  /** Names of what it serves. */
  readonly models: readonly string[]
}

/** Names of models that are remembered of all foreign members together, and how many of these. */
const MAX_MODELS = 4096
const MAX_MEMBERS = 256

interface Known {
  foreign: ForeignMember
  heardAt: number
}

/** Remembers the members of other protocol versions, as long as they are heard. Without clock and I/O. */
export class ForeignMembers {
  readonly #silentMs: number
  readonly #known = new Map<string, Known>()

  /** @param silentMs - milliseconds after its last heartbeat when a member is forgotten. */
  constructor(silentMs: number) {
    this.#silentMs = silentMs
  }

  get all(): readonly ForeignMember[] {
    return [...this.#known.values()].map(({ foreign }) => foreign)
  }

  /** Remembers the member of a heartbeat. @returns the member if it is new; undefined if it was known, or there are too many. */
  heard(now: number, heartbeat: SentHeartbeat): ForeignMember | undefined {
    const { member, role, protocol, newestProtocol = protocol, revisions } = heartbeat
    const known = this.#known.get(member)
    const models =
      revisions === undefined
        ? (known?.foreign.models ?? [])
        : [...new Set(revisions.map(([model]) => model))]
    const foreign = { member, role, oldestProtocol: protocol, newestProtocol, models }
    const others = this.all.filter((one) => one.member !== member)
    const count = others.reduce((sum, one) => sum + one.models.length, models.length)
    if (others.length >= MAX_MEMBERS || count > MAX_MODELS) return undefined
    this.#known.set(member, { foreign, heardAt: now })
    return known === undefined ? foreign : undefined
  }

  tick(now: number): void {
    for (const [member, { heardAt }] of this.#known) {
      if (now - heardAt >= this.#silentMs) this.#known.delete(member)
    }
  }
}

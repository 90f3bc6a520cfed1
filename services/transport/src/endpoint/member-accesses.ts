import type { Heartbeat } from '@tutti/protocol'
import type { EndpointSettings } from '../endpoint-settings.ts'
import type { BrokerOptions, FindReplicaExecutor, TransportCounts } from '../endpoints.ts'
import type { ForeignMember } from '../members/foreign-members.ts'
import {
  type AccessListener,
  type MemberListener,
  MergedMembers,
} from '../members/merged-members.ts'
import {
  Endpoint,
  type EndpointOptions,
  type EndpointRole,
  type EndpointState,
} from './endpoint.ts'
import { EndpointCalls, type EndpointCallsOptions } from './endpoint-calls.ts'

/** What sets a kind of member apart. */
export interface MemberRole {
  readonly role: Heartbeat['role']
  /** What heartbeats over an access say. @param calls - those over it. */
  readonly state: (calls: EndpointCalls) => EndpointState
  readonly listener: MemberListener
}

/** A member on one broker. */
export interface MemberAccess {
  readonly endpoint: Endpoint
  readonly calls: EndpointCalls
}

/** What routers and steps are opened with alike. */
export type MemberOptions = Omit<EndpointOptions, 'settings'> &
  Pick<EndpointCallsOptions, 'executor' | 'describe' | 'answer'>

/** What a member is opened with. */
export interface MemberAccessesOptions extends MemberOptions {
  /** The broker that the installation is leaving. */
  readonly former?: BrokerOptions | undefined
}

/**
 * A member on its broker and, while its installation moves to that broker from a former one, on both, under the same id. Members that
 * are on both are one; each is called over the primary access if it can be reached there. An access that is away takes down only
 * what goes over it.
 */
export class MemberAccesses {
  readonly primary: MemberAccess
  /** A model version of another member. */
  readonly executor: FindReplicaExecutor
  readonly #all: readonly MemberAccess[]
  readonly #merged: MergedMembers | undefined
  readonly #heardRoles: readonly Heartbeat['role'][]

  /** @throws ServeError SETTING_INVALID, INVALID_PARAMETER for options that cannot be. */
  constructor(o: MemberAccessesOptions, settings: EndpointSettings, role: MemberRole) {
    const { former, log } = o
    this.#heardRoles = role.role === 'router' ? ['router', 'step'] : ['router']
    if (former === undefined) {
      this.primary = openAccess(o, settings, role, role.listener)
      this.#all = [this.primary]
      this.executor = this.primary.calls.executor
      return
    }
    const merged = new MergedMembers(role.listener, 2)
    const own = shareMemory(settings)
    // Its direct connections are those of the primary access.
    const atFormer = {
      ...o,
      broker: former,
      direct: undefined,
      log: log.child({ broker: 'former' }),
    }
    this.primary = openAccess(o, own, role, merged.access(0))
    this.#all = [this.primary, openAccess(atFormer, own, role, merged.access(1))]
    this.#merged = merged
    this.executor = (target, replica) => this.of(replica).calls.executor(target, replica)
  }

  /** The access over which the member is called. */
  of(member: string): MemberAccess {
    return this.#all[this.#merged?.via(member) ?? 0] ?? this.primary
  }

  /** Members of a role that are neither dead nor gone. */
  members(role: Heartbeat['role']): readonly string[] {
    return this.#merged?.members(role) ?? this.primary.endpoint.membership.members(role)
  }

  /** Members that share no protocol version with this one, each once. */
  get foreign(): readonly ForeignMember[] {
    const all = this.#all.flatMap(({ endpoint }) => endpoint.foreign.all)
    return [...new Map(all.map((foreign) => [foreign.member, foreign])).values()]
  }

  get transport(): TransportCounts {
    const counts = this.#all.map(({ endpoint }) => endpoint.link.counts)
    return {
      brokers: new Map(counts.map((one, i) => [i === 0 ? 'primary' : 'former', one])),
      members: new Map(this.#heardRoles.map((role) => [role, this.members(role).length])),
      foreign: this.foreign.length,
      direct: this.primary.endpoint.direct?.counts,
    }
  }

  /** Resolves when every broker is there, or the time is over. */
  async untilUp(timeoutMs: number): Promise<void> {
    await Promise.all(this.#all.map(({ endpoint }) => endpoint.untilUp(timeoutMs)))
  }

  announceSoon(): void {
    for (const { endpoint } of this.#all) endpoint.announceSoon()
  }

  /** @param open - how many calls over an access are to end. @throws the signal's reason. */
  async drain(open: (calls: EndpointCalls) => number, signal: AbortSignal): Promise<void> {
    const drained = this.#all.map(({ endpoint, calls }) =>
      endpoint.drain(() => open(calls), signal),
    )
    await Promise.all(drained)
  }

  /** Takes no new work from now on. */
  refuseWork(): void {
    for (const { calls } of this.#all) calls.callee.drain()
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map(({ endpoint }) => endpoint.close()))
  }
}

/** Both accesses together hold no more than one would. */
function shareMemory(settings: EndpointSettings): EndpointSettings {
  const { receiveBytes, heldBytes, creditTotalBytes } = settings
  return {
    ...settings,
    receiveBytes: half(receiveBytes),
    heldBytes: half(heldBytes),
    creditTotalBytes: half(creditTotalBytes),
  }
}

function openAccess(
  o: MemberOptions,
  settings: EndpointSettings,
  { role, state }: MemberRole,
  listener: MemberListener & Partial<AccessListener>,
): MemberAccess {
  const access: MemberAccess = openCalls(o, settings, {
    role,
    state: () => state(access.calls),
    heard: (heartbeat, what) => {
      access.calls.heard(heartbeat)
      listener.heard(heartbeat, what)
    },
    suspected: (member, isSuspect) => listener.suspected(member, isSuspect),
    gone: (now, member, error, how) =>
      listener.gone(member, error, () => access.calls.gone(now, member, error, how)),
    linked: (isUp) => listener.linked?.(isUp),
  })
  return access
}

/** Brings a member on the broker, with the calls over it. @param role - what sets its kind of member apart. */
function openCalls(
  o: MemberOptions,
  settings: EndpointSettings,
  role: EndpointRole,
): { readonly endpoint: Endpoint; readonly calls: EndpointCalls } {
  const { broker, direct, member, clock, log, executor, answer } = o
  const endpoint = new Endpoint({ broker, direct, member, clock, log, settings }, role)
  const describe = (): unknown => o.describe()
  const own = { self: member, executor, describe, answer }
  return { endpoint, calls: new EndpointCalls({ ...own, endpoint, settings, clock }) }
}

function half(bytes: number): number {
  return Math.ceil(bytes / 2)
}

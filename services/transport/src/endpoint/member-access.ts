import type { ServeError } from '@tutti/errors'
import type { Heartbeat } from '@tutti/protocol'
import type { EndpointSettings } from '../endpoint-settings.ts'
import type { Novelty } from '../members/membership.ts'
import { Endpoint, type EndpointOptions, type EndpointState } from './endpoint.ts'
import { EndpointCalls, type EndpointCallsOptions } from './endpoint-calls.ts'

/** Does what a role has to do when something is heard of other members. */
export interface MemberListener {
  heard(heartbeat: Heartbeat, what: Novelty): void
  suspected(member: string, isSuspect: boolean): void
  /** @param endCalls - fails what is in flight there; to be called once, when nothing new goes there from then on. */
  gone(member: string, error: ServeError, endCalls: () => void): void
}

/** Says what sets a kind of member apart. */
export interface MemberRole {
  readonly role: Heartbeat['role']
  /** Content of the heartbeats. */
  readonly state: (calls: EndpointCalls) => EndpointState
  readonly listener: MemberListener
}

/** A member on the broker, and the calls that it makes and answers there. */
export interface MemberAccess {
  readonly endpoint: Endpoint
  readonly calls: EndpointCalls
}

/** Options that routers and steps have alike. */
export type MemberOptions = Omit<EndpointOptions, 'settings'> &
  Pick<EndpointCallsOptions, 'executor' | 'describe' | 'answer'>

/** Brings a member on the broker. @throws ServeError SETTING_INVALID, INVALID_PARAMETER for options that cannot be. */
export function openAccess(
  o: MemberOptions,
  settings: EndpointSettings,
  { role, state, listener }: MemberRole,
): MemberAccess {
  const { broker, direct, member, clock, log, executor, answer } = o
  const endpoint = new Endpoint(
    { broker, direct, member, clock, log, settings },
    {
      role,
      state: () => state(calls),
      heard: (heartbeat, what) => {
        calls.heard(heartbeat)
        listener.heard(heartbeat, what)
      },
      suspected: (suspect, isSuspect) => listener.suspected(suspect, isSuspect),
      gone: (now, gone, error, how) =>
        listener.gone(gone, error, () => calls.gone(now, gone, error, how)),
    },
  )
  const describe = (): unknown => o.describe()
  const own = { self: member, executor, describe, answer }
  const calls = new EndpointCalls({ ...own, endpoint, settings, clock })
  return { endpoint, calls }
}

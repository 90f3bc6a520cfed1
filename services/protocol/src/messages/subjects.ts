import type { Heartbeat } from './message.ts'
import { decodeToken, memberToken, settingToken } from './subject-tokens.ts'

/** Names that subjects are made of, besides the members' ids. */
export interface SubjectNames {
  /** Prefix of the installation. */
  readonly prefix: string
  /** Repository of the tenant: a namespace on Kubernetes. */
  readonly repository: string
}

/** The subjects of one repository: everything begins with `<prefix>.<repository>.`. */
export interface Subjects {
  /** `<prefix>.<repository>.>`: what a tenant's user has to be permitted, and all that it has to be. */
  readonly all: string
  /** Heartbeats of all members of a role. */
  heartbeats(role: Heartbeat['role']): string
  heartbeat(member: string, role: Heartbeat['role']): string
  /** Member messages to a member, on its control connection. */
  control(member: string): string
  /** Chunks to a member, on its data connection. */
  data(member: string): string
  /** A request that a living member answers at once. */
  ping(member: string): string
  /** Where answers to a member's requests come: what a NATS client takes as its inbox prefix. */
  inbox(member: string): string
  /** @returns the member of a `heartbeat` subject of this repository; undefined for any other subject. */
  memberOfHeartbeat(subject: string): string | undefined
}

/**
 * Every name becomes one token of a subject.
 *
 * @throws ServeError SETTING_INVALID if prefix or repository is empty, too long or not for users; INVALID_PARAMETER from the
 * functions for such a member.
 */
export function buildSubjects(names: SubjectNames): Subjects {
  const root = `${settingToken('prefix', names.prefix)}.${settingToken('repository', names.repository)}`
  const heartbeats = (role: string): string => `${root}.hb.${role}.`
  const subject = (member: string, rest: string): string =>
    `${root}.peer.${memberToken(member)}.${rest}`
  return {
    all: `${root}.>`,
    heartbeats: (role) => `${heartbeats(role)}*`,
    heartbeat: (member, role) => heartbeats(role) + memberToken(member),
    control: (member) => subject(member, 'ctl'),
    data: (member) => subject(member, 'data'),
    ping: (member) => subject(member, 'ping'),
    inbox: (member) => `${root}.inbox.${memberToken(member)}`,
    memberOfHeartbeat: (text) => {
      const start = ['router', 'step'].map(heartbeats).find((one) => text.startsWith(one))
      return start === undefined ? undefined : decodeToken(text.slice(start.length))
    },
  }
}

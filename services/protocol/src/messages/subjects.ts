import type { Heartbeat } from './message.ts'
import { decodeToken, memberToken, settingToken } from './subject-tokens.ts'

/** Names that subjects begin with. */
export interface SubjectNames {
  /** Prefix of the installation. */
  readonly prefix: string
  /** Repository of the tenant: a namespace on Kubernetes. */
  readonly repository: string
}

/** Subjects of one repository. All begin with `<prefix>.<repository>.`. */
export interface Subjects {
  /** Pattern `<prefix>.<repository>.>`. A tenant's user needs permission for it, and for nothing else. */
  readonly all: string
  /** Makes the pattern for the heartbeats of all members of a role. */
  heartbeats(role: Heartbeat['role']): string
  heartbeat(member: string, role: Heartbeat['role']): string
  /** Makes the subject of member messages to a member, on its control connection. */
  control(member: string): string
  /** Makes the subject of chunks to a member, on its data connection. */
  data(member: string): string
  /** Makes the subject of a request that a living member answers at once. */
  ping(member: string): string
  /** Makes the inbox prefix of a member's NATS client, under which answers to its requests come. */
  inbox(member: string): string
  /** Reads the member from a `heartbeat` subject of this repository. @returns undefined for any other subject. */
  memberOfHeartbeat(subject: string): string | undefined
}

/**
 * Makes the subjects of a repository. Every name becomes one token of a subject.
 *
 * @throws ServeError SETTING_INVALID if prefix or repository is empty, too long or reserved. The functions throw
 * INVALID_PARAMETER for a member's id that is empty or too long.
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

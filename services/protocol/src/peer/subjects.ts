import { decodeToken, peerToken, settingToken } from './subject-tokens.ts'

/** What subjects are made of, besides the peers' ids. */
export interface SubjectNames {
  /** Of the installation. */
  readonly prefix: string
  /** Of the tenant: a namespace on Kubernetes. */
  readonly repository: string
}

/** The subjects of one repository: everything begins with `<prefix>.<repository>.`. */
export interface PeerSubjects {
  /** `<prefix>.<repository>.>`: what a tenant's user has to be permitted, and all that it has to be. */
  readonly all: string
  /** Every peer's heartbeats. */
  readonly heartbeats: string
  heartbeat(peer: string): string
  /** Peer messages to a peer, on its control connection. */
  control(peer: string): string
  /** Chunks to a peer, on its data connection. */
  data(peer: string): string
  /** A request that a living peer answers at once. */
  ping(peer: string): string
  /** Where answers to a peer's requests come: what a NATS client takes as its inbox prefix. */
  inbox(peer: string): string
  /** @returns the peer of a `heartbeat` subject of this repository; undefined for any other subject. */
  peerOfHeartbeat(subject: string): string | undefined
}

/**
 * Every name becomes one token of a subject.
 *
 * @throws ServeError SETTING_INVALID if prefix or repository is empty, too long or not for users; INVALID_PARAMETER from the
 * functions for such a peer.
 */
export function peerSubjects(names: SubjectNames): PeerSubjects {
  const root = `${settingToken('prefix', names.prefix)}.${settingToken('repository', names.repository)}`
  const heartbeats = `${root}.hb.`
  const peers = `${root}.peer.`
  const subject = (peer: string, rest: string): string => `${peers}${peerToken(peer)}.${rest}`
  return {
    all: `${root}.>`,
    heartbeats: `${heartbeats}*`,
    heartbeat: (peer) => heartbeats + peerToken(peer),
    control: (peer) => subject(peer, 'ctl'),
    data: (peer) => subject(peer, 'data'),
    ping: (peer) => subject(peer, 'ping'),
    inbox: (peer) => `${root}.inbox.${peerToken(peer)}`,
    peerOfHeartbeat: (text) =>
      text.startsWith(heartbeats) ? decodeToken(text.slice(heartbeats.length)) : undefined,
  }
}

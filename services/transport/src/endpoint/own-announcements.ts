import { ServeError } from '@tutti/errors'
import { encodeHeartbeat, type Heartbeat, MESSAGE_PROTOCOL_VERSION } from '@tutti/protocol'
import { isSameRevisions } from '../members/membership.ts'
import type { MemberContext } from './member-context.ts'

/** Heartbeats are tried four times a second; one line in that time says that none fits. */
const LOG_EVERY_MS = 30_000
/** Number of revisions up to which every heartbeat names all: the rest of a heartbeat is as long. */
const FEW_REVISIONS = 8
/** Number of heartbeats of which one has all revisions. A member that missed a change, or a member, knows it after two seconds. */
const FULL_EVERY = 8

/** The parts of a member that sending its heartbeats needs. */
export interface AnnouncementsContext
  extends Pick<MemberContext, 'self' | 'role' | 'subjects' | 'clock' | 'events'> {
  readonly link: Pick<MemberContext['link'], 'publish' | 'maxPayload'>
}

/** The statements of a member about itself in one heartbeat. */
export type OwnState = Omit<Heartbeat, 'member' | 'role' | 'sequence' | 'protocol'>

const FAREWELL: OwnState = {
  description: '',
  inFlight: 0,
  queued: 0,
  freeSlots: 0,
  freeBytes: 0,
  unaskedBytes: 0,
  draining: true,
  revisions: [],
  transports: [],
}

/** Sends the heartbeats of this member, and knows why the last could not be sent. */
export class OwnAnnouncements {
  readonly #context: AnnouncementsContext
  #failure: ServeError | undefined
  #loggedAt = 0
  #sequence = 0
  /** Revisions that the last full heartbeat said, and how many heartbeats have been sent without them. */
  #revisions: Heartbeat['revisions'] = []
  #withoutThem = FULL_EVERY

  constructor(o: AnnouncementsContext) {
    this.#context = o
  }

  /** Error of the last heartbeat, which could not be sent; undefined if it could. */
  get failure(): ServeError | undefined {
    return this.#failure
  }

  /** Makes the next heartbeat name all revisions, because a member may not have heard them. */
  sayAll(): void {
    this.#withoutThem = FULL_EVERY
  }

  /** Says that this member is gone: nothing follows. */
  sayFarewell(): void {
    this.send(FAREWELL)
  }

  send(state: OwnState): void {
    const { self, role, subjects, clock, link } = this.#context
    this.#sequence += 1
    const own = { member: self, role, sequence: this.#sequence }
    const all = { ...own, ...state, protocol: MESSAGE_PROTOCOL_VERSION }
    const isFull = this.#mustSayAll(state.revisions)
    try {
      const said = isFull ? all : { ...all, revisions: undefined }
      link.publish(subjects.heartbeat(self, role), encodeHeartbeat(said, link.maxPayload))
    } catch (error) {
      this.#failed(clock.now(), ServeError.from(error))
      return
    }
    this.#withoutThem = isFull ? 0 : this.#withoutThem + 1
    this.#revisions = state.revisions
    this.#succeeded()
  }

  #mustSayAll(revisions: Heartbeat['revisions']): boolean {
    return (
      revisions.length <= FEW_REVISIONS ||
      this.#withoutThem + 1 >= FULL_EVERY ||
      !isSameRevisions(revisions, this.#revisions)
    )
  }

  #failed(now: number, error: ServeError): void {
    const isNew = this.#failure === undefined
    this.#failure = error
    if (!isNew && now - this.#loggedAt < LOG_EVERY_MS) return
    this.#loggedAt = now
    this.#context.events.announceFailed(error)
  }

  #succeeded(): void {
    if (this.#failure === undefined) return
    this.#failure = undefined
    this.#context.events.announcedAgain()
  }
}

import {
  type AdmissionBounds,
  compileBounds,
  type EndReason,
  endedFor,
  type GivenBounds,
  refuseFurtherBytes,
  refuseFurtherRequest,
} from './admission-bounds.ts'
import { AdmissionTicket, ClientShare, type TicketPool } from './admission-ticket.ts'
import { EndedCalls } from './ended-calls.ts'
import { WaitingLine } from './waiting-line.ts'

/**
 * Counts requests and bytes that servers read, work on or send. Beyond a bound it ends the calls that have waited longest for
 * their clients. If no call waits, it refuses the new request or bytes at once. The servers of a process share one admission.
 */
export class Admission implements TicketPool {
  readonly bounds: AdmissionBounds
  readonly whole: Admission | undefined
  /** Line of all tickets that wait, including tickets of admissions that are a share of this one. */
  readonly line = new WaitingLine<AdmissionTicket>()
  readonly ended: EndedCalls
  /** Shares of clients, by connection; undefined if a connection carries the calls of many clients. */
  readonly #connections: WeakMap<object, ClientShare> | undefined
  #requests = 0
  #bytes = 0
  #waitingBytes = 0

  /**
   * @param whole - the admission of which this one is a share, for requests from outside: everything counts in `whole` too, and
   * connections have no bounds, because they are those of proxies.
   * @param ended - counts the calls that this admission ends; absent: as `whole` does.
   */
  constructor(bounds: GivenBounds = {}, whole?: Admission, ended?: EndedCalls) {
    this.bounds = compileBounds(bounds)
    this.whole = whole
    this.ended = ended ?? whole?.ended ?? new EndedCalls()
    this.#connections = whole === undefined ? new WeakMap() : undefined
  }

  get requests(): number {
    return this.#requests
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Part of `bytes` that waits for clients. */
  get waitingBytes(): number {
    return this.#waitingBytes
  }

  /**
   * Opens a ticket for a request that is to be read. It has no place before `enter`.
   *
   * @param identity - the share in which bytes of the caller count.
   * @throws ServeError OVERLOADED if no place is free, or no byte could be read.
   */
  open(connection?: object, identity?: ClientShare): AdmissionTicket {
    this.#check(this)
    return new AdmissionTicket(this, connection && this.#shareOf(connection), identity)
  }

  /** Makes room for bytes of a ticket that do not wait yet. @throws ServeError OVERLOADED if there is none. */
  makeRoom(bytes: number, ticket?: AdmissionTicket): void {
    const isOpen = this.#makeRoom(bytes, ticket, this)
    if (isOpen && this.whole !== undefined) this.whole.#makeRoom(bytes, ticket, this)
  }

  /** Counts bytes of a ticket; a negative number gives bytes back. */
  count(bytes: number): void {
    this.#bytes += bytes
    this.whole?.count(bytes)
  }

  /** Counts bytes of a ticket that wait for the client. */
  countWaiting({ connection, identity }: AdmissionTicket, bytes: number): void {
    this.#waitingBytes += bytes
    if (this.whole !== undefined) this.whole.#waitingBytes += bytes
    if (connection !== undefined) connection.waitingBytes += bytes
    if (identity !== undefined) identity.waitingBytes += bytes
  }

  /** Ends waiting calls if too many bytes wait since this ticket has more. A call that waits alone goes on. */
  limitWaiting(ticket: AdmissionTicket): void {
    const { maxWaitingBytesPerClient: most } = this.bounds
    const { connection, identity } = ticket
    if (connection !== undefined && connection.waitingBytes > most)
      this.#limit(connection, most, 'client', ticket)
    if (identity !== undefined && identity.waitingBytes > most)
      this.#limit(identity, most, 'client', ticket)
    this.#limitAll(ticket)
    if (this.whole !== undefined) this.whole.#limitAll(ticket)
  }

  /** Ends a call whose client is waited for. */
  end(ticket: AdmissionTicket, reason: Exclude<EndReason, 'calls'>): void {
    this.ended.count(reason)
    ticket.end(endedFor(reason, this))
  }

  /** Takes a place for a ticket. @throws ServeError OVERLOADED if there are `maxRequests`. */
  enter(): void {
    if (this.#requests >= this.bounds.maxRequests) refuseFurtherRequest(this)
    this.whole?.enter()
    this.#requests += 1
  }

  /** Gives the place of a ticket back. */
  leave(): void {
    this.whole?.leave()
    this.#requests -= 1
  }

  #check(share: Admission): void {
    if (this.#requests >= this.bounds.maxRequests) refuseFurtherRequest(this)
    this.#makeRoom(1, undefined, share)
    if (this.whole !== undefined) this.whole.#check(share)
  }

  /**
   * Ends calls until there is room.
   *
   * @param share - whose calls may end for it: those from outside end none from inside.
   * @returns false if the ticket's own call has ended.
   */
  #makeRoom(bytes: number, ticket: AdmissionTicket | undefined, share: Admission): boolean {
    const { maxBytes } = this.bounds
    if (this.#bytes + bytes <= maxBytes) return true
    const own = ticket?.callWaitingBytes ?? 0
    // To end all others would not do either.
    if (this.#bytes - (share.#waitingBytes - own) + bytes > maxBytes)
      refuseFurtherBytes(this, bytes)
    while (this.#bytes + bytes > maxBytes) {
      const { longest } = share.line
      if (longest === undefined) refuseFurtherBytes(this, bytes)
      this.end(longest, 'pool')
      if (ticket !== undefined && longest.isBeside(ticket)) return false
    }
    return true
  }

  #limitAll(ticket: AdmissionTicket): void {
    const { maxWaitingBytes: most } = this.bounds
    if (this.#waitingBytes > most) this.#limit(this, most, 'waiting', ticket)
  }

  #limit(
    of: { readonly waitingBytes: number; readonly line: WaitingLine<AdmissionTicket> },
    most: number,
    reason: 'waiting' | 'client',
    ticket: AdmissionTicket,
  ): void {
    while (of.waitingBytes > most) {
      const { longest } = of.line
      if (longest === undefined) return
      if (longest.isBeside(ticket) && ticket.callWaitingBytes === of.waitingBytes) return
      this.end(longest, reason)
    }
  }

  #shareOf(connection: object): ClientShare | undefined {
    let share = this.#connections?.get(connection)
    if (share !== undefined || this.#connections === undefined) return share
    share = new ClientShare()
    this.#connections.set(connection, share)
    return share
  }
}

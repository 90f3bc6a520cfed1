import type { ByteCount, ServeError } from '@tutti/errors'
import { LinePlace, WaitingLine } from './waiting-line.ts'

/** A call that may be ended while its client is waited for. */
export interface WaitingCall {
  /** Bytes that its client has sent of the request, or taken of the answer; only differences mean something. */
  readonly movedBytes: number
  /** Ends the call, and gives back the bytes that it holds at once. */
  endWaiting(error: ServeError): void
}

/** Bytes that wait for one client: a connection, or an identity. */
export class ClientShare {
  waitingBytes = 0
  readonly line = new WaitingLine<AdmissionTicket>()
}

/** The pool in which tickets count: an `Admission`. */
export interface TicketPool {
  readonly whole: TicketPool | undefined
  readonly line: WaitingLine<AdmissionTicket>
  makeRoom(bytes: number, ticket: AdmissionTicket): void
  count(bytes: number): void
  countWaiting(ticket: AdmissionTicket, bytes: number): void
  limitWaiting(ticket: AdmissionTicket): void
  enter(): void
  leave(): void
}

/**
 * The bytes and the place of one request or stream; to be closed when it is over. While it has no place, its bytes wait for its
 * client: to send the rest of the request, or to take the answer.
 */
export class AdmissionTicket implements ByteCount {
  /** Share of the connection, in which waiting bytes count beside the admission. */
  readonly connection: ClientShare | undefined
  /** Share of the caller's identity, in which waiting bytes count too. */
  readonly identity: ClientShare | undefined
  /** Number of times that the ticket's bytes began to wait for the client. */
  waits = 0
  hasPlace = false
  readonly #admission: TicketPool
  /** Places in the lines of the ticket's pools and its client: in all of them or in none. */
  readonly #places: readonly LinePlace<AdmissionTicket>[]
  #call: WaitingCall | undefined
  #bytes = 0
  /** Part of `#bytes` that waits for the client: all or none. */
  #waitingBytes = 0
  /** Bytes of all tickets of the call that wait, counted at the first ticket. */
  #callWaitingBytes = 0
  #first: AdmissionTicket = this
  /** Whether the client is waited for, if not as the place says. */
  #waitsForClient: boolean | undefined
  #isClosed = false
  #error: ServeError | undefined

  constructor(
    admission: TicketPool,
    connection: ClientShare | undefined,
    identity: ClientShare | undefined,
  ) {
    this.#admission = admission
    this.connection = connection
    this.identity = identity
    const places = [new LinePlace(admission.line, this)]
    if (admission.whole !== undefined) places.push(new LinePlace(admission.whole.line, this))
    if (connection !== undefined) places.push(new LinePlace(connection.line, this))
    if (identity !== undefined) places.push(new LinePlace(identity.line, this))
    this.#places = places
  }

  /** The call that ends if others need its bytes; undefined for none. */
  get call(): WaitingCall | undefined {
    return this.#call
  }

  /** Bytes that it has counted and not given back. */
  get bytes(): number {
    return this.#bytes
  }

  /** Bytes that wait for the client. */
  get waitingBytes(): number {
    return this.#waitingBytes
  }

  /** Bytes of all tickets of its call that wait for the client. */
  get callWaitingBytes(): number {
    return this.#first.#callWaitingBytes
  }

  /** True for a ticket of the same call. */
  isBeside(other: AdmissionTicket): boolean {
    return this.#first === other.#first
  }

  /** Says which call ends if others need the bytes. */
  belongTo(call: WaitingCall): this {
    this.#call = call
    return this
  }

  /** Opens another ticket of the same client and call, for bytes that wait at other times. */
  another(): AdmissionTicket {
    const other = new AdmissionTicket(this.#admission, this.connection, this.identity)
    other.#call = this.#call
    other.#first = this.#first
    return other
  }

  /** Takes a place for a request that has arrived whole. A request that has only begun has none. @throws ServeError OVERLOADED */
  enter(): void {
    if (this.hasPlace || this.#isClosed) return
    this.#admission.enter()
    this.hasPlace = true
    this.#update()
  }

  /** Gives the place back until the next request of a stream. */
  leave(): void {
    if (this.hasPlace) this.#admission.leave()
    this.hasPlace = false
    this.#update()
  }

  /**
   * Says whether the ticket's bytes wait for the client.
   *
   * @param isWaiting - undefined: they wait while the ticket has no place.
   */
  waitForClient(isWaiting: boolean | undefined): void {
    this.#waitsForClient = isWaiting
    this.#update()
  }

  /**
   * Counts bytes of a request or an answer; a negative number gives back. To make room, it ends calls that wait for their
   * clients.
   *
   * @throws ServeError OVERLOADED without counting the bytes, if there is no room or this call itself ends.
   */
  charge(bytes: number): void {
    if (this.#isClosed || bytes === 0) return
    if (bytes > 0) this.#admission.makeRoom(bytes, this)
    if (this.#isClosed) return this.#throwEnd()
    this.#bytes += bytes
    this.#admission.count(bytes)
    this.#update()
    if (this.#isClosed) this.#throwEnd()
  }

  /** Gives back bytes, at most those that the ticket has. */
  release(bytes: number): void {
    this.charge(-Math.min(bytes, this.#bytes))
  }

  /** Gives everything back; a second time does nothing. */
  close(): void {
    this.release(this.#bytes)
    this.leave()
    this.#isClosed = true
  }

  /** Moves bytes to another ticket of the same call. @throws ServeError OVERLOADED */
  move(bytes: number, to: AdmissionTicket): void {
    if (to === this) return
    this.release(bytes)
    to.charge(bytes)
  }

  /** Closes the ticket and ends its call with the error. */
  end(error: ServeError): void {
    this.#error = error
    this.close()
    this.#call?.endWaiting(error)
  }

  #throwEnd(): void {
    if (this.#error !== undefined) throw this.#error
  }

  #update(): void {
    const before = this.#waitingBytes
    const now = (this.#waitsForClient ?? !this.hasPlace) ? this.#bytes : 0
    if (now === before) return
    this.#waitingBytes = now
    this.#first.#callWaitingBytes += now - before
    this.#admission.countWaiting(this, now - before)
    // The client that has sent or taken something is waited for anew.
    if (now < before) for (const place of this.#places) place.leave()
    if (now > 0 && (before === 0 || now < before)) for (const place of this.#places) place.enter()
    if (before === 0) this.waits += 1
    if (now > before) this.#admission.limitWaiting(this)
  }
}

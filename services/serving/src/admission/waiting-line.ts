/** A ticket, as far as a line knows it. */
interface Waiting {
  /** The call that ends with it; undefined for none. */
  readonly call: unknown
}

/** The place of a ticket in one of its lines, whether or not the ticket is in the line now. */
export class LinePlace<T extends Waiting> {
  readonly ticket: T
  readonly #line: WaitingLine<T>
  before: LinePlace<T> | undefined
  after: LinePlace<T> | undefined

  constructor(line: WaitingLine<T>, ticket: T) {
    this.#line = line
    this.ticket = ticket
  }

  /** Puts a ticket that is not in the line at its end. */
  enter(): void {
    const { last } = this.#line
    this.before = last
    if (last === undefined) this.#line.first = this
    else last.after = this
    this.#line.last = this
  }

  leave(): void {
    const { before, after } = this
    if (before === undefined) this.#line.first = after
    else before.after = after
    if (after === undefined) this.#line.last = before
    else after.before = before
    this.before = this.after = undefined
  }
}

/** The tickets of one pool or client that wait for their client, in the order in which they began to wait. */
export class WaitingLine<T extends Waiting> implements Iterable<T> {
  first: LinePlace<T> | undefined
  last: LinePlace<T> | undefined;

  *[Symbol.iterator](): Iterator<T> {
    let next = this.first
    while (next !== undefined) {
      const { ticket, after } = next
      next = after
      yield ticket
    }
  }

  /** The ticket that has waited longest among those with a call; undefined if there is none. */
  get longest(): T | undefined {
    let place = this.first
    while (place !== undefined && place.ticket.call === undefined) place = place.after
    return place?.ticket
  }
}

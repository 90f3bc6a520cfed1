import { ServeError } from '@tutti/errors'

const MEBIBYTE = 1024 * 1024

/** What the servers of one process accept at the same time, all servers together. */
export interface AdmissionBounds {
  /** Inference requests from their first byte to their answer; an open request stream counts as one. */
  readonly maxRequests: number
  /** Bytes of request bodies, half read or in flight, and of answers until their clients have taken them. */
  readonly maxBytes: number
}

export const ADMISSION_DEFAULTS: AdmissionBounds = {
  maxRequests: 4096,
  maxBytes: 1024 * MEBIBYTE,
}

/**
 * Counts what is being read and worked on, and refuses what goes over a bound, at once. One object is shared by all servers
 * of a process.
 */
export class Admission {
  readonly bounds: AdmissionBounds
  #requests = 0
  #bytes = 0
  #refused = 0

  constructor(bounds: Partial<AdmissionBounds> = {}) {
    this.bounds = { ...ADMISSION_DEFAULTS, ...bounds }
  }

  get requests(): number {
    return this.#requests
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Refusals since the start. */
  get refused(): number {
    return this.#refused
  }

  /** @throws ServeError OVERLOADED if there are `maxRequests`, or if no byte could be read. */
  admit(): AdmissionTicket {
    const { maxRequests, maxBytes } = this.bounds
    if (this.#requests >= maxRequests) {
      throw this.#refuse(
        `server is overloaded: ${this.#requests} requests are in flight, the bound is ${maxRequests}`,
      )
    }
    if (this.#bytes >= maxBytes) throw this.#overBytes(1)
    this.#requests += 1
    return new AdmissionTicket(this.#charge, this.#leave)
  }

  readonly #charge = (bytes: number): void => {
    if (bytes > 0 && this.#bytes + bytes > this.bounds.maxBytes) throw this.#overBytes(bytes)
    this.#bytes += bytes
  }

  readonly #leave = (bytes: number): void => {
    this.#requests -= 1
    this.#bytes -= bytes
  }

  #overBytes(more: number): ServeError {
    return this.#refuse(
      `server is overloaded: ${this.#bytes} bytes of requests and answers are in flight, ${more} more would go over, the bound is ${this.bounds.maxBytes}`,
    )
  }

  #refuse(message: string): ServeError {
    this.#refused += 1
    return new ServeError('OVERLOADED', message)
  }
}

/** The place of one request. Whoever got it closes it, whatever becomes of the request. */
export class AdmissionTicket {
  readonly #charge: (bytes: number) => void
  readonly #leave: (bytes: number) => void
  #bytes = 0
  #isClosed = false

  constructor(charge: (bytes: number) => void, leave: (bytes: number) => void) {
    this.#charge = charge
    this.#leave = leave
  }

  /** Counts bytes of the request as they arrive and of its answer once it is there. @throws ServeError OVERLOADED without counting them. */
  charge(bytes: number): void {
    if (this.#isClosed) return
    this.#charge(bytes)
    this.#bytes += bytes
  }

  /** Gives back bytes that are no longer held, at most those that it has, for requests that share a ticket. */
  release(bytes: number): void {
    if (this.#isClosed) return
    const held = Math.min(bytes, this.#bytes)
    this.#charge(-held)
    this.#bytes -= held
  }

  /** Gives everything back; a second time does nothing. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#leave(this.#bytes)
  }
}

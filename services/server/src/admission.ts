import { ServeError } from '@tutti/errors'

/** What the servers of one process accept at the same time, all servers together. */
export interface AdmissionBounds {
  /** Inference requests from their first byte to their answer; an open request stream counts as one. */
  readonly maxRequests: number
  /** Bytes of request bodies, half read or in flight, and of answers until their clients have taken them. */
  readonly maxBytes: number
}

export const ADMISSION_DEFAULTS: AdmissionBounds = {
  maxRequests: 4096,
  maxBytes: 2 ** 30,
}

/**
 * Counts what is being read and worked on, and refuses what goes over a bound, at once. One object is shared by all servers
 * of a process.
 */
export class Admission {
  readonly bounds: AdmissionBounds
  #requests = 0
  #bytes = 0

  constructor(bounds: Partial<AdmissionBounds> = {}) {
    this.bounds = { ...ADMISSION_DEFAULTS, ...bounds }
  }

  get requests(): number {
    return this.#requests
  }

  get bytes(): number {
    return this.#bytes
  }

  /** @throws ServeError OVERLOADED if there are `maxRequests`, or if no byte could be read. */
  admit(): AdmissionTicket {
    const { maxRequests, maxBytes } = this.bounds
    if (this.#requests >= maxRequests) {
      throw overloaded(`${this.#requests} requests are in flight, the bound is ${maxRequests}`)
    }
    if (this.#bytes >= maxBytes) throw this.#overBytes(1)
    this.#requests += 1
    return new AdmissionTicket(this)
  }

  /** For tickets: counts bytes, or gives back with a negative number. @throws ServeError OVERLOADED without counting them. */
  charge(bytes: number): void {
    if (bytes > 0 && this.#bytes + bytes > this.bounds.maxBytes) throw this.#overBytes(bytes)
    this.#bytes += bytes
  }

  /** For tickets: a request is over. */
  leave(): void {
    this.#requests -= 1
  }

  #overBytes(more: number): ServeError {
    return overloaded(
      `${this.#bytes} bytes of requests and answers are in flight, ${more} more would go over, the bound is ${this.bounds.maxBytes}`,
    )
  }
}

function overloaded(text: string): ServeError {
  return new ServeError('OVERLOADED', `server is overloaded: ${text}`)
}

/** The place of one request; to be closed when the request is over. */
export class AdmissionTicket {
  readonly #admission: Admission
  #bytes = 0
  #isClosed = false

  constructor(admission: Admission) {
    this.#admission = admission
  }

  /** Counts bytes of the request as they arrive and of its answer once it is there. @throws ServeError OVERLOADED */
  charge(bytes: number): void {
    if (this.#isClosed) return
    this.#admission.charge(bytes)
    this.#bytes += bytes
  }

  /** Gives back bytes that are no longer held, at most those that it has, for requests that share a ticket. */
  release(bytes: number): void {
    this.charge(-Math.min(bytes, this.#bytes))
  }

  /** Gives everything back; a second time does nothing. */
  close(): void {
    if (this.#isClosed) return
    this.release(this.#bytes)
    this.#isClosed = true
    this.#admission.leave()
  }
}

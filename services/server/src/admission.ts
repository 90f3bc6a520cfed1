import {
  ADMISSION_DEFAULTS,
  type AdmissionBounds,
  refuseBytes,
  refuseRequest,
} from './admission-bounds.ts'

/** Counts what is being read and worked on, and refuses what goes over a bound, at once. The servers of a process share one. */
export class Admission {
  readonly bounds: AdmissionBounds
  readonly #whole: Admission | undefined
  #requests = 0
  #bytes = 0

  /** @param whole - what this is a share of: everything counts there too. */
  constructor(bounds: Partial<AdmissionBounds> = {}, whole?: Admission) {
    this.bounds = { ...ADMISSION_DEFAULTS, ...bounds }
    this.#whole = whole
  }

  get requests(): number {
    return this.#requests
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Lets a request be read, which takes no place. @throws ServeError OVERLOADED if none is free, or if no byte could be read. */
  open(): AdmissionTicket {
    this.check()
    return new AdmissionTicket(this)
  }

  /** @throws ServeError OVERLOADED if there are `maxRequests`, or `maxBytes`. */
  check(): void {
    if (this.#requests >= this.bounds.maxRequests) refuseRequest(this)
    if (this.#bytes >= this.bounds.maxBytes) refuseBytes(this, 1)
    this.#whole?.check()
  }

  /** For tickets: counts bytes, or gives back with a negative number. @throws ServeError OVERLOADED without counting them. */
  charge(bytes: number): void {
    if (bytes > 0 && this.#bytes + bytes > this.bounds.maxBytes) refuseBytes(this, bytes)
    this.#whole?.charge(bytes)
    this.#bytes += bytes
  }

  /** For tickets: takes a place. @throws ServeError OVERLOADED if there are `maxRequests`. */
  enter(): void {
    if (this.#requests >= this.bounds.maxRequests) refuseRequest(this)
    this.#whole?.enter()
    this.#requests += 1
  }

  /** For tickets: a request is over. */
  leave(): void {
    this.#whole?.leave()
    this.#requests -= 1
  }
}

/** The bytes and the place of one request or stream; to be closed when it is over. */
export class AdmissionTicket {
  readonly #admission: Admission
  #bytes = 0
  hasPlace = false
  #isClosed = false

  constructor(admission: Admission) {
    this.#admission = admission
  }

  /** That it has counted and not given back. */
  get bytes(): number {
    return this.#bytes
  }

  /** Takes a place for a request that has arrived whole. A request that has only begun has none. @throws ServeError OVERLOADED */
  enter(): void {
    if (this.hasPlace || this.#isClosed) return
    this.#admission.enter()
    this.hasPlace = true
  }

  /** Gives the place back until the next request of a stream. */
  leave(): void {
    if (this.hasPlace) this.#admission.leave()
    this.hasPlace = false
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
    this.release(this.#bytes)
    this.leave()
    this.#isClosed = true
  }
}

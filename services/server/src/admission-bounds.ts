import { ServeError } from '@tutti/errors'

/** What the servers of one process accept at the same time, all servers together. */
export interface AdmissionBounds {
  /** Requests from their last byte to their answer; a request stream counts as one while it has a request. */
  readonly maxRequests: number
  /** Bytes of request bodies, half read or in flight, of tensors between steps, and of answers until their clients have taken them. */
  readonly maxBytes: number
}

export const ADMISSION_DEFAULTS: AdmissionBounds = {
  maxRequests: 4096,
  maxBytes: 2 ** 30,
}

/** The part of the bounds that requests from outside get at most, so that they never lock out those from inside. */
const OUTSIDE_SHARE = 0.75

export function outsideShare({ maxRequests, maxBytes }: AdmissionBounds): AdmissionBounds {
  return { maxRequests: toShare(maxRequests), maxBytes: toShare(maxBytes) }
}

function toShare(bound: number): number {
  return Math.max(1, Math.floor(bound * OUTSIDE_SHARE))
}

/** What is counted, and up to where. */
interface Counted {
  readonly bounds: AdmissionBounds
  readonly requests: number
  readonly bytes: number
}

/** @throws ServeError OVERLOADED */
export function refuseRequest({ requests, bounds }: Counted): never {
  throw overloaded(`${requests} requests are in flight, the bound is ${bounds.maxRequests}`)
}

/** @param more - bytes that would go over the bound. @throws ServeError OVERLOADED */
export function refuseBytes({ bytes, bounds }: Counted, more: number): never {
  throw overloaded(
    `${bytes} bytes of requests and answers are in flight, ${more} more would go over, the bound is ${bounds.maxBytes}`,
  )
}

function overloaded(text: string): ServeError {
  return new ServeError('OVERLOADED', `server is overloaded: ${text}`)
}

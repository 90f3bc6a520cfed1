import { ServeError } from '@tutti/errors'

/** Reasons to end a call that waits for its client, as metrics name them. */
export const END_REASONS = ['pool', 'waiting', 'client', 'rate', 'calls'] as const
export type EndReason = (typeof END_REASONS)[number]

/** Bounds of what the servers of one process accept at the same time, all servers together. */
export interface AdmissionBounds {
  /** Requests from their last byte to their answer; a request stream counts as one while it has a request. */
  readonly maxRequests: number
  /**
   * Bytes of request bodies, half read or in flight, of tensors between steps, and of answers until their clients have taken
   * them.
   */
  readonly maxBytes: number
  /** Part of `maxBytes` for calls that wait for their clients: requests that are not whole, and answers that are not taken. */
  readonly maxWaitingBytes: number
  /** Part of `maxBytes` for waiting calls of one identity, and of one connection unless it is a proxy's. */
  readonly maxWaitingBytesPerClient: number
}

/** Bounds as they are given. Absent bounds of bytes that wait are parts of `maxBytes`. */
export type GivenBounds = { readonly [K in keyof AdmissionBounds]?: AdmissionBounds[K] | undefined }

const MAX_REQUESTS = 4096
const MAX_BYTES = 2 ** 30
const WAITING_PART = 1 / 2
const CLIENT_PART = 1 / 4

/** Fills in the bounds that are absent. */
export function compileBounds(given: GivenBounds): AdmissionBounds {
  const { maxRequests = MAX_REQUESTS, maxBytes = MAX_BYTES } = given
  return {
    maxRequests,
    maxBytes,
    maxWaitingBytes: given.maxWaitingBytes ?? toPart(maxBytes, WAITING_PART),
    maxWaitingBytesPerClient: given.maxWaitingBytesPerClient ?? toPart(maxBytes, CLIENT_PART),
  }
}

export const ADMISSION_DEFAULTS: AdmissionBounds = compileBounds({})

/**
 * The class of a call in the admission. A `request` has tensors or files, and counts among the requests in work. A `control`
 * call is about models and settings; it counts in bounds of its own, and so works under overload. A call of class `none` does
 * not count.
 */
export type AdmissionClass = 'none' | 'control' | 'request'

/** Most bytes of one call without tensors or files, over both protocols. No valid one needs more. */
export const MAX_CONTROL_BYTES = 2 ** 16

/** The part of the bounds that requests from outside get at most, so that they never lock out those from inside. */
const OUTSIDE_SHARE = 0.75

/** Makes the bounds of requests from outside. */
export function outsideShare(bounds: AdmissionBounds): AdmissionBounds {
  return {
    maxRequests: toPart(bounds.maxRequests, OUTSIDE_SHARE),
    maxBytes: toPart(bounds.maxBytes, OUTSIDE_SHARE),
    maxWaitingBytes: toPart(bounds.maxWaitingBytes, OUTSIDE_SHARE),
    maxWaitingBytesPerClient: toPart(bounds.maxWaitingBytesPerClient, OUTSIDE_SHARE),
  }
}

function toPart(bound: number, part: number): number {
  return Math.max(1, Math.floor(bound * part))
}

/** The numbers that are counted, and their bounds. */
interface Counted {
  readonly bounds: AdmissionBounds
  readonly requests: number
  readonly bytes: number
  readonly waitingBytes: number
}

/** Refuses a request beyond `maxRequests`. @throws ServeError OVERLOADED */
export function refuseFurtherRequest({ requests, bounds }: Counted): never {
  throw overloaded(`${requests} requests are in flight, the bound is ${bounds.maxRequests}`)
}

/** Refuses bytes beyond `maxBytes`. @param more - bytes that would go over the bound. @throws ServeError OVERLOADED */
export function refuseFurtherBytes({ bytes, bounds }: Counted, more: number): never {
  throw overloaded(
    `${bytes} bytes of requests and answers are in flight, ${more} more would go over, the bound is ${bounds.maxBytes}`,
  )
}

/** Makes the error of a call that is ended while it waits for its client. */
export function endedFor(
  reason: Exclude<EndReason, 'calls'>,
  { bytes, waitingBytes, bounds }: Counted,
): ServeError {
  if (reason === 'rate')
    return overloaded(
      `${bytes} bytes of requests and answers are in flight, and the client sends or reads too slowly`,
    )
  const which = {
    pool: `${bytes} bytes of requests and answers are in flight, the bound is ${bounds.maxBytes}`,
    waiting: `${waitingBytes} bytes of half requests and unread answers wait for clients, the bound is ${bounds.maxWaitingBytes}`,
    client: `half requests and unread answers of this client have more than ${bounds.maxWaitingBytesPerClient} bytes`,
  }[reason]
  return overloaded(`${which}; this call has waited longest for its client`)
}

function overloaded(text: string): ServeError {
  return new ServeError('OVERLOADED', `server is overloaded: ${text}`)
}

/*
 * How calls reach a run thread: numbers in shared memory, in a ring that the serving thread fills and the run thread empties in
 * order. A wake-up of either side costs several microseconds and is needed only where it sleeps.
 */

/**
 * Functions that run threads call: place in OrtApi, how many arguments of the size of an address there are, and whether there is
 * a result.
 */
export const THREAD_CALLS = [
  { place: 9, parameters: 8, hasResult: true },
  { place: 7, parameters: 4, hasResult: true },
  { place: 95, parameters: 1, hasResult: false },
] as const
/** Their indexes. */
export const RUN = 0
export const CREATE_SESSION = 1
export const RELEASE_SESSION = 2
/** In place of an index: the thread ends. */
export const END_THREAD = -1

/** In the header: calls posted, and calls done; both count on and wrap at 2^32. */
export const POSTED = 0
export const DONE = 1
const HEADER_BYTES = 64

/** Calls that are in the ring at most; more wait outside. */
export const RING_CALLS = 64
/** The numbers of a call: which one it is, up to eight arguments, its result, and when it began and ended. */
export const CALL = {
  FUNCTION: 0,
  ARGUMENTS: 1,
  RESULT: 9,
  BEGIN: 10,
  END: 11,
  NUMBERS: 12,
} as const
/** The views of a mailbox. */
export interface Mailbox {
  readonly memory: SharedArrayBuffer
  readonly header: Int32Array
  /** Addresses are whole numbers below 2^53. */
  readonly calls: Float64Array
}

/** The data with which a run thread is started: its mailbox, and the addresses of what it may call. */
export interface RunThreadData {
  readonly memory: SharedArrayBuffer
  readonly functions: readonly bigint[]
}

export function createMailbox(): Mailbox {
  const bytes = HEADER_BYTES + RING_CALLS * CALL.NUMBERS * Float64Array.BYTES_PER_ELEMENT
  return openMailbox(new SharedArrayBuffer(bytes))
}

export function openMailbox(memory: SharedArrayBuffer): Mailbox {
  const header = new Int32Array(memory, 0, 2)
  return { memory, header, calls: new Float64Array(memory, HEADER_BYTES) }
}

/** Where the numbers of a call are. @param count - of the calls before it. */
export function callAt(count: number): number {
  return ((count >>> 0) % RING_CALLS) * CALL.NUMBERS
}

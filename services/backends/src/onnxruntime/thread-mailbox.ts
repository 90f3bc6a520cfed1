/*
 * How calls reach a run thread: numbers in shared memory, in a ring that the serving thread fills and the run thread empties in
 * order. A wake-up of either side costs several microseconds and is needed only where it sleeps.
 */

/**
 * Functions that run threads call. Each has its position in OrtApi, its number of address-sized arguments, and whether it has a
 * result.
 */
export const THREAD_CALLS = [
  { place: 9, parameters: 8, hasResult: true },
  { place: 7, parameters: 4, hasResult: true },
  { place: 95, parameters: 1, hasResult: false },
  { place: 8, parameters: 5, hasResult: true },
] as const
/** Index of OrtApi's `Run` in THREAD_CALLS; those of three others follow. */
export const RUN = 0
export const CREATE_SESSION = 1
export const RELEASE_SESSION = 2
/** `CreateSessionFromArray`: a session of bytes in memory. */
export const CREATE_SESSION_OF_BYTES = 3
/** Value in place of an index, which ends the thread. */
export const END_THREAD = -1

/** Position in the header of the number of posted calls; that of done calls follows. Both wrap at 2^32. */
export const POSTED = 0
export const DONE = 1
const HEADER_BYTES = 64

/** Most calls in the ring; further ones wait outside. */
export const RING_CALLS = 64
/** Positions of the numbers of a call: its function, up to eight arguments, its result, its begin and its end. */
export const CALL = {
  FUNCTION: 0,
  ARGUMENTS: 1,
  RESULT: 9,
  BEGIN: 10,
  END: 11,
  NUMBERS: 12,
} as const
/** Shared memory of a mailbox, and the views of it. */
export interface Mailbox {
  readonly memory: SharedArrayBuffer
  readonly header: Int32Array
  /** Numbers of the calls. Addresses are exact, since they are whole numbers below 2^53. */
  readonly calls: Float64Array
}

/** Data that a run thread is started with: its mailbox, and the addresses of the functions that it may call. */
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

/** Finds the position of a call's numbers in the ring. @param count - of the calls before it. */
export function callAt(count: number): number {
  return ((count >>> 0) % RING_CALLS) * CALL.NUMBERS
}

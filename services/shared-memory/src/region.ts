import { type CancelSignal, ServeError } from '@tutti/errors'
import type { SharedPlace } from '@tutti/protocol'

/**
 * Most bytes that a request reads, or a response writes, on the event loop. A mebibyte takes almost a millisecond there, and
 * one turn may bring hundreds of requests.
 */
export const AT_ONCE_BYTES = 256 * 1024
/** Bytes of one piece of a larger copy: between pieces, the thread pool and the event loop do other work. */
export const PIECE_BYTES = 1024 * 1024

export type RegionKind = 'system' | 'cuda'

/** A client's request to register a region of system shared memory. */
export interface SystemRequest {
  readonly name: string
  /** Name of the object, as for `shm_open`; with or without a slash before it. */
  readonly key: string
  /** Begin of the region in the object, in bytes. */
  readonly offset: number
  readonly byteSize: number
}

/** A client's request to register a region of GPU memory. */
export interface CudaRequest {
  readonly name: string
  /** A `cudaIpcMemHandle_t`. */
  readonly handle: Uint8Array
  readonly deviceId: number
  readonly byteSize: number
}

/** Memory of a client that requests read and write. Texts of errors are Triton's. */
export interface Region {
  readonly kind: RegionKind
  readonly request: SystemRequest | CudaRequest
  /** Requests in work that will write into it, or read it off the event loop. */
  uses: number
  /** Checks that a place is within the region. @throws ServeError if it is not wholly within. */
  check(place: SharedPlace): void
  /** Copies the bytes of a place at once. @throws ServeError if the place is not there, or no longer there. */
  read(place: SharedPlace): Uint8Array
  /** Allocates memory for the bytes of a place, which `fill` copies. @throws ServeError as `read`. */
  reserve(place: SharedPlace): Buffer
  /**
   * Copies the bytes of a place into `bytes`, without blocking the event loop.
   *
   * @throws ServeError as `read`, or the signal's reason.
   */
  fill(bytes: Buffer, place: SharedPlace, signal: CancelSignal): Promise<void>
  /**
   * Copies bytes to the begin of a place at once.
   *
   * @throws ServeError if the memory has gone or shrunk, or the machine has none left.
   */
  write(place: SharedPlace, bytes: Uint8Array): void
  /**
   * Copies bytes to the begin of a place, without blocking the event loop.
   *
   * @throws ServeError as `write`, or the signal's reason.
   */
  store(bytes: Uint8Array, place: SharedPlace, signal: CancelSignal): Promise<void>
  /** Closes the memory. Copies that are still to be made fail. */
  close(): void
}

/** Place in a registered region for an output. */
export interface OutputPlace {
  readonly region: Region
  readonly place: SharedPlace
}

/** Checks that a place is wholly within a region. @throws ServeError if it is not. */
export function checkPlace(request: Region['request'], { offset, byteSize }: SharedPlace): void {
  if (offset >= request.byteSize) throw isOutside(request, 'offset')
  const isWithin = byteSize > 0 && offset + byteSize <= request.byteSize
  if (!isWithin) throw isOutside(request, 'offset + byte size')
}

/** Makes Triton's error for a place outside its region. */
export function isOutside({ name }: Region['request'], what: string): ServeError {
  const text = `Invalid ${what} for shared memory region: '${name}'`
  return new ServeError('INVALID_PARAMETER', text)
}

/** Makes Triton's error for a region that is not registered. */
export function unknownRegion(name: string): ServeError {
  return new ServeError('NOT_FOUND', `Unable to find shared memory region: '${name}'`, {
    details: { field: 'parameters.shared_memory_region' },
  })
}

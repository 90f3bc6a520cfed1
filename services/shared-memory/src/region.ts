import { type CancelSignal, ServeError } from '@tutti/errors'
import type { SharedPlace } from '@tutti/protocol'

/**
 * Bytes that a request reads and a response writes at most on the event loop, where a mebibyte takes almost a millisecond: one turn of
 * it may bring hundreds of requests.
 */
export const AT_ONCE_BYTES = 256 * 1024
/** Bytes that are copied at a time if there are more: the thread pool and the event loop have work of others too. */
export const PIECE_BYTES = 1024 * 1024

export type RegionKind = 'system' | 'cuda'

/** A region that a client registers of the memory of its machine. */
export interface SystemRequest {
  readonly name: string
  /** As it is given to `shm_open`: with or without a slash before it. */
  readonly key: string
  /** Where the region begins in the object, in bytes. */
  readonly offset: number
  readonly byteSize: number
}

/** A region that a client registers of the memory of a GPU. */
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
  /** @throws ServeError for a place that is not wholly within the region. */
  check(place: SharedPlace): void
  /** Copies the bytes of a place at once. @throws ServeError if the place is not there, or no longer there. */
  read(place: SharedPlace): Uint8Array
  /** Memory for the bytes of a place, which `fill` copies. @throws ServeError as `read`. */
  reserve(place: SharedPlace): Buffer
  /** Copies the bytes of a place while others go on. @throws ServeError as `read`, or the signal's reason. */
  fill(bytes: Buffer, place: SharedPlace, signal: CancelSignal): Promise<void>
  /** Copies bytes to the begin of a place at once. @throws ServeError if the memory has gone or shrunk, or there is none left for it. */
  write(place: SharedPlace, bytes: Uint8Array): void
  /** Copies bytes to the begin of a place while others go on. @throws ServeError as `write`, or the signal's reason. */
  store(bytes: Uint8Array, place: SharedPlace, signal: CancelSignal): Promise<void>
  /** Forgets the memory: what is still to be copied fails. */
  close(): void
}

/** Where in a registered region an output is to be written. */
export interface OutputPlace {
  readonly region: Region
  readonly place: SharedPlace
}

/** @throws ServeError for a place that is not wholly within the region. */
export function checkPlace(request: Region['request'], { offset, byteSize }: SharedPlace): void {
  if (offset >= request.byteSize) throw isOutside(request, 'offset')
  const isWithin = byteSize > 0 && offset + byteSize <= request.byteSize
  if (!isWithin) throw isOutside(request, 'offset + byte size')
}

/** Triton's error for a place that is not there. */
export function isOutside({ name }: Region['request'], what: string): ServeError {
  const text = `Invalid ${what} for shared memory region: '${name}'`
  return new ServeError('INVALID_PARAMETER', text)
}

/** Triton's error for a region that is not registered. */
export function unknownRegion(name: string): ServeError {
  return new ServeError('NOT_FOUND', `Unable to find shared memory region: '${name}'`, {
    details: { field: 'parameters.shared_memory_region' },
  })
}

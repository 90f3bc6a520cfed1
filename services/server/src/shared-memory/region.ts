import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  read,
  readSync,
  write,
  writeSync,
} from 'node:fs'
import { promisify } from 'node:util'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { SharedPlace } from '@tutti/protocol'

/** Where Linux keeps the objects of `shm_open`: a key is the name of a file. */
const FOLDER = '/dev/shm'
/**
 * What a request reads and a response writes at most on the event loop, where a mebibyte takes almost a millisecond: one turn of it may
 * bring hundreds of requests.
 */
export const AT_ONCE_BYTES = 256 * 1024
/** What the thread pool, which has work of others too, copies at a time. */
const PIECE_BYTES = 1024 * 1024

const readPiece = promisify(read)
const writePiece = promisify(write)

/** The memory of tritonserver's own Python processes: no client may read that of others. As in Triton from 25.08 on. */
const RESERVED = 'triton_python_backend_shm_region_'

/** What a client registers. */
export interface RegionRequest {
  readonly name: string
  /** As it is given to `shm_open`: with or without a slash before it. */
  readonly key: string
  /** Where the region begins in the object, in bytes. */
  readonly offset: number
  readonly byteSize: number
}

/**
 * A part of a POSIX shared memory object of a client. It is read and written by position and never mapped: a client that shortens
 * its object meanwhile gets an error, where a mapping would end this process.
 */
export class Region {
  readonly request: RegionRequest
  /** Requests in work that will write into it, or read it off the event loop. */
  uses = 0
  /** What the thread pool copies at this moment. */
  #copies = 0
  #fd: number | undefined

  /** @throws ServeError if there is no such object, or if it is smaller than that. */
  constructor(request: RegionRequest) {
    this.request = request
    const { name, offset, byteSize } = request
    const fd = open(request.key)
    const { size } = fstatSync(fd)
    const problem =
      byteSize === 0
        ? 'unable to process address spaceInvalid argument'
        : offset + byteSize > size && 'invalid args'
    if (problem !== false) {
      closeSync(fd)
      const text = `failed to register shared memory region '${name}': ${problem}`
      throw new ServeError('INVALID_PARAMETER', text)
    }
    this.#fd = fd
  }

  /** @throws ServeError for a place that is not wholly within the region. */
  check({ offset, byteSize }: SharedPlace): void {
    const { request } = this
    if (offset >= request.byteSize) throw this.#outside('offset')
    if (byteSize === 0 || offset + byteSize > request.byteSize) throw this.#shortened()
  }

  /** Copies the bytes of a place at once. @throws ServeError if the place is not there, or not any more. */
  read(place: SharedPlace): Uint8Array {
    this.check(place)
    const bytes = Buffer.allocUnsafeSlow(place.byteSize)
    let done = 0
    while (done < bytes.byteLength) {
      const left = bytes.byteLength - done
      const count = readSync(this.#descriptor, bytes, done, left, this.#at(place) + done)
      if (count === 0) throw this.#shortened()
      done += count
    }
    return bytes
  }

  /** Memory for the bytes of a place, which `fill` copies. @throws ServeError as `read`. */
  reserve(place: SharedPlace): Buffer {
    this.check(place)
    this.#checkObject(this.#at(place) + place.byteSize)
    return Buffer.allocUnsafeSlow(place.byteSize)
  }

  /** Copies the bytes of a place off the event loop. @throws ServeError as `read`, or the signal's reason. */
  fill(bytes: Buffer, place: SharedPlace, signal: CancelSignal): Promise<void> {
    return this.#copy(bytes, signal, async (fd, piece, done) => {
      const { bytesRead } = await readPiece(fd, piece, 0, piece.byteLength, this.#at(place) + done)
      return bytesRead
    })
  }

  /** Copies bytes to the begin of a place at once. @throws ServeError if the object has become too small, or there is no memory for it. */
  write(place: SharedPlace, bytes: Uint8Array): void {
    const begin = this.#at(place)
    this.#checkObject(begin + bytes.byteLength)
    let done = 0
    try {
      while (done < bytes.byteLength) {
        const left = bytes.byteLength - done
        done += writeSync(this.#descriptor, bytes, done, left, begin + done)
      }
    } catch (cause) {
      throw this.#noMemory(cause)
    }
  }

  /** Copies bytes to the begin of a place off the event loop. @throws ServeError as `write`, or the signal's reason. */
  store(bytes: Uint8Array, place: SharedPlace, signal: CancelSignal): Promise<void> {
    const begin = this.#at(place)
    return this.#copy(bytes, signal, async (fd, piece, done) => {
      this.#checkObject(begin + bytes.byteLength)
      try {
        const { bytesWritten } = await writePiece(fd, piece, 0, piece.byteLength, begin + done)
        return bytesWritten
      } catch (cause) {
        throw this.#noMemory(cause)
      }
    })
  }

  /** Forgets the object: what is still to be copied fails. */
  close(): void {
    const fd = this.#fd
    this.#fd = undefined
    // The thread that copies would get whatever has that number by then.
    if (fd !== undefined && this.#copies === 0) closeSync(fd)
  }

  /** @param move - copies a piece of `bytes` that has `done` bytes before it. @returns how many bytes of it. */
  async #copy(
    bytes: Uint8Array,
    signal: CancelSignal,
    move: (fd: number, piece: Uint8Array, done: number) => Promise<number>,
  ): Promise<void> {
    let done = 0
    while (done < bytes.byteLength) {
      if (signal.aborted) throw signal.reason
      const fd = this.#descriptor
      this.#copies += 1
      try {
        const count = await move(fd, bytes.subarray(done, done + PIECE_BYTES), done)
        if (count === 0) throw this.#shortened()
        done += count
      } finally {
        this.#copies -= 1
        if (this.#fd === undefined && this.#copies === 0) closeSync(fd)
      }
    }
  }

  #at({ offset }: SharedPlace): number {
    return this.request.offset + offset
  }

  /** Written on beyond its end, an object would grow. @param end - in the object. */
  #checkObject(end: number): void {
    if (fstatSync(this.#descriptor).size < end) throw this.#shortened()
  }

  /** An object has its memory only once it is written. */
  #noMemory(cause: unknown): ServeError {
    const text = `no memory left for shared memory region: '${this.request.name}'`
    return new ServeError('OVERLOADED', text, { cause })
  }

  get #descriptor(): number {
    if (this.#fd === undefined) throw unknownRegion(this.request.name)
    return this.#fd
  }

  #shortened(): ServeError {
    return this.#outside('offset + byte size')
  }

  #outside(what: string): ServeError {
    const text = `Invalid ${what} for shared memory region: '${this.request.name}'`
    return new ServeError('INVALID_PARAMETER', text)
  }
}

/** Where in a registered region an output is to be written. */
export interface OutputPlace {
  readonly region: Region
  readonly place: SharedPlace
}

/** Triton's error for a region that is not registered. */
export function unknownRegion(name: string): ServeError {
  return new ServeError('NOT_FOUND', `Unable to find shared memory region: '${name}'`, {
    details: { field: 'parameters.shared_memory_region' },
  })
}

/** Opens the object of a key, if it is a plain file of that folder. */
function open(key: string): number {
  try {
    const name = key.replace(/^\/+/, '')
    if (name === '' || name.includes('/') || name.startsWith(RESERVED)) throw new Error('no key')
    // Without waiting for the other end, if it should be a pipe.
    const fd = openSync(
      `${FOLDER}/${name}`,
      constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    )
    if (fstatSync(fd).isFile()) return fd
    closeSync(fd)
    throw new Error('no shared memory object')
  } catch (cause) {
    const text = `Unable to open shared memory region: '${key}'`
    throw new ServeError('INVALID_PARAMETER', text, { code: 'INTERNAL', cause })
  }
}

import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import { ServeError } from '@tutti/errors'
import type { SharedPlace } from '@tutti/protocol'

/** Where Linux keeps the objects of `shm_open`: a key is the name of a file. */
const FOLDER = '/dev/shm'
/** What one call of the system reads or writes at most. */
const PIECE_BYTES = 2 ** 30
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
  /** Requests in work that will write into it. */
  uses = 0
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

  /** Copies the bytes of a place. @throws ServeError if the place is not there, or not any more. */
  read(place: SharedPlace): Uint8Array {
    this.check(place)
    const bytes = Buffer.allocUnsafeSlow(place.byteSize)
    let done = 0
    while (done < bytes.byteLength) {
      const count = Math.min(PIECE_BYTES, bytes.byteLength - done)
      const at = this.request.offset + place.offset + done
      const read = readSync(this.#descriptor, bytes, done, count, at)
      if (read === 0) throw this.#shortened()
      done += read
    }
    return bytes
  }

  /** Copies bytes to the begin of a place. @throws ServeError if the object has become too small, or there is no memory for it. */
  write(place: SharedPlace, bytes: Uint8Array): void {
    const begin = this.request.offset + place.offset
    // Written on regardless, the object would grow.
    if (fstatSync(this.#descriptor).size < begin + bytes.byteLength) throw this.#shortened()
    let done = 0
    while (done < bytes.byteLength) {
      const count = Math.min(PIECE_BYTES, bytes.byteLength - done)
      done += this.#write(bytes.subarray(done, done + count), begin + done)
    }
  }

  #write(bytes: Uint8Array, at: number): number {
    const fd = this.#descriptor
    try {
      return writeSync(fd, bytes, 0, bytes.byteLength, at)
    } catch (cause) {
      // An object has its memory only once it is written.
      const text = `no memory left for shared memory region: '${this.request.name}'`
      throw new ServeError('OVERLOADED', text, { cause })
    }
  }

  close(): void {
    const fd = this.#fd
    this.#fd = undefined
    if (fd !== undefined) closeSync(fd)
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

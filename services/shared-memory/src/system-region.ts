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
import {
  checkPlace,
  isOutside,
  PIECE_BYTES,
  type Region,
  type SystemRequest,
  unknownRegion,
} from './region.ts'

/** Folder in which Linux keeps the objects of `shm_open`: a key is the name of a file. */
const FOLDER = '/dev/shm'
const readPiece = promisify(read)
const writePiece = promisify(write)

/** The memory of tritonserver's own Python processes: no client may read that of others. As in Triton from 25.08 on. */
const RESERVED = 'triton_python_backend_shm_region_'

/**
 * A part of a POSIX shared memory object of a client. It is read and written by position and never mapped: a client that shortens
 * its object meanwhile gets an error, where a mapping would end this process.
 */
export class SystemRegion implements Region {
  readonly kind = 'system'
  readonly request: SystemRequest
  uses = 0
  /** Copies that the thread pool makes at this moment. */
  #copies = 0
  #fd: number | undefined

  /** Opens the object of the region. @throws ServeError if there is no such object, or if it is smaller than the region. */
  constructor(request: SystemRequest) {
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

  check(place: SharedPlace): void {
    checkPlace(this.request, place)
  }

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

  reserve(place: SharedPlace): Buffer {
    this.check(place)
    this.#checkObject(this.#at(place) + place.byteSize)
    return Buffer.allocUnsafeSlow(place.byteSize)
  }

  fill(bytes: Buffer, place: SharedPlace, signal: CancelSignal): Promise<void> {
    return this.#copy(bytes, signal, async (fd, piece, done) => {
      const { bytesRead } = await readPiece(fd, piece, 0, piece.byteLength, this.#at(place) + done)
      return bytesRead
    })
  }

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

  /** Checks that a write stays within the object, which would grow otherwise. @param end - in the object. */
  #checkObject(end: number): void {
    if (fstatSync(this.#descriptor).size < end) throw this.#shortened()
  }

  /** Makes the error of missing memory: an object gets its memory only when it is written. */
  #noMemory(cause: unknown): ServeError {
    const text = `no memory left for shared memory region: '${this.request.name}'`
    return new ServeError('OVERLOADED', text, { cause })
  }

  get #descriptor(): number {
    if (this.#fd === undefined) throw unknownRegion(this.request.name)
    return this.#fd
  }

  #shortened(): ServeError {
    return isOutside(this.request, 'offset + byte size')
  }
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

import { setImmediate as nextTurn } from 'node:timers/promises'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { SharedPlace } from '@tutti/protocol'
import { type CudaRequest, checkPlace, PIECE_BYTES, type Region, unknownRegion } from './region.ts'

/** Memory of a GPU that a client has exported, opened in this process. */
export interface CudaMemory {
  /** Bytes of the client's allocation. */
  readonly byteSize: number
  /** Fills `bytes` with a copy of the memory from `begin` on. @throws ServeError with CUDA's words. */
  read(begin: number, bytes: Uint8Array): void
  /** Copies bytes into the memory at `begin`, before it returns. @throws ServeError with CUDA's words. */
  write(begin: number, bytes: Uint8Array): void
  close(): void
}

/**
 * Opens the memory of a `cudaIpcMemHandle_t`. Resolves with undefined where there is no driver.
 *
 * @throws ServeError with CUDA's words.
 */
export type OpenCudaMemory = (
  handle: Uint8Array,
  deviceId: number,
) => Promise<CudaMemory | undefined>

/**
 * A region of GPU memory. The event loop copies it, at most a piece in a turn, because CUDA's state belongs to one thread. If the
 * device is lost, requests that name the region fail.
 */
export class CudaRegion implements Region {
  readonly kind = 'cuda'
  readonly request: CudaRequest
  uses = 0
  #memory: CudaMemory | undefined

  /** @param memory - closed with the region. @throws ServeError if the allocation is smaller than the region. */
  constructor(request: CudaRequest, memory: CudaMemory) {
    const { name, byteSize } = request
    if (byteSize > memory.byteSize) {
      const text = `failed to register shared memory region '${name}': invalid args`
      throw new ServeError('INVALID_PARAMETER', text)
    }
    this.request = request
    this.#memory = memory
  }

  check(place: SharedPlace): void {
    checkPlace(this.request, place)
  }

  read(place: SharedPlace): Uint8Array {
    const bytes = this.reserve(place)
    this.#opened.read(place.offset, bytes)
    return bytes
  }

  reserve(place: SharedPlace): Buffer {
    this.check(place)
    return Buffer.allocUnsafeSlow(place.byteSize)
  }

  async fill(bytes: Buffer, { offset }: SharedPlace, signal: CancelSignal): Promise<void> {
    await inPieces(bytes, signal, (piece, done) => this.#opened.read(offset + done, piece))
  }

  write({ offset }: SharedPlace, bytes: Uint8Array): void {
    if (bytes.byteLength > 0) this.#opened.write(offset, bytes)
  }

  async store(bytes: Uint8Array, { offset }: SharedPlace, signal: CancelSignal): Promise<void> {
    await inPieces(bytes, signal, (piece, done) => this.#opened.write(offset + done, piece))
  }

  close(): void {
    const memory = this.#memory
    this.#memory = undefined
    try {
      memory?.close()
    } catch {
      // Its device is lost, and the memory with it: nothing is left to close.
    }
  }

  get #opened(): CudaMemory {
    if (this.#memory === undefined) throw unknownRegion(this.request.name)
    return this.#memory
  }
}

/** @throws the signal's reason. */
async function inPieces(
  bytes: Uint8Array,
  signal: CancelSignal,
  copy: (piece: Uint8Array, done: number) => void,
): Promise<void> {
  for (let done = 0; done < bytes.byteLength; done += PIECE_BYTES) {
    await nextTurn()
    if (signal.aborted) throw signal.reason
    copy(bytes.subarray(done, done + PIECE_BYTES), done)
  }
}

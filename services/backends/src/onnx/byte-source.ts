import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { ServeError } from '@tutti/errors'
import { refuseModel } from './model-fields.ts'

/** Bytes that are read piece by piece, so that a model's weights never enter our memory. */
export interface ByteSource {
  readonly size: number
  /** A view of up to `length` bytes from `offset`; shorter only at the end of the source. Valid until the next call. */
  read(offset: number, length: number): Promise<Uint8Array>
  close(): Promise<void>
}

/** Nodes and value infos of ordinary graphs are far smaller, so most reads are served from one window. */
const WINDOW_BYTES = 64 * 1024

export function memorySource(bytes: Uint8Array): ByteSource {
  return {
    size: bytes.byteLength,
    read: async (offset, length) => bytes.subarray(offset, offset + length),
    close: async () => {},
  }
}

class FileSource implements ByteSource {
  readonly size: number
  readonly #file: FileHandle
  #window = new Uint8Array(0)
  #windowStart = 0

  constructor(file: FileHandle, size: number) {
    this.#file = file
    this.size = size
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    const wanted = Math.min(length, this.size - offset)
    const from = offset - this.#windowStart
    if (from < 0 || from + wanted > this.#window.byteLength) await this.#load(offset, wanted)
    const start = offset - this.#windowStart
    return this.#window.subarray(start, start + wanted)
  }

  async #load(offset: number, wanted: number): Promise<void> {
    const size = Math.min(Math.max(wanted, WINDOW_BYTES), this.size - offset)
    const window = new Uint8Array(size)
    let filled = 0
    while (filled < size) {
      const { bytesRead } = await this.#file.read(window, filled, size - filled, offset + filled)
      if (bytesRead === 0) refuseModel('the file became shorter while it was read')
      filled += bytesRead
    }
    this.#window = window
    this.#windowStart = offset
  }

  async close(): Promise<void> {
    await this.#file.close()
  }
}

/** Opens a regular file. @throws ServeError MODEL_LOAD_FAILED if it is absent or unreadable. */
export async function openFileSource(path: string): Promise<ByteSource> {
  try {
    // A named pipe would otherwise wait for a writer, without end and without a way to give up.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const stat = await file.stat()
    if (stat.isFile()) return new FileSource(file, stat.size)
    await file.close()
  } catch (error) {
    throw new ServeError('MODEL_LOAD_FAILED', `cannot read model file '${path}'`, { cause: error })
  }
  throw new ServeError('MODEL_LOAD_FAILED', `model file '${path}' is not a regular file`)
}

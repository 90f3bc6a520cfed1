import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { ServeError } from '@tutti/errors'

/** Bytes that are read piece by piece, so that a model's weights never enter our memory. */
export interface ByteSource {
  readonly size: number
  /**
   * Reads up to `length` bytes from `offset`; fewer only at the end of the source. The result is a view that is valid until the
   * next call.
   */
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

function fileSource(file: FileHandle, size: number): ByteSource {
  let window = new Uint8Array(0)
  let windowStart = 0
  return {
    size,
    read: async (offset, length) => {
      const wanted = Math.min(length, size - offset)
      if (offset < windowStart || offset + wanted > windowStart + window.byteLength) {
        const buffer = new Uint8Array(Math.min(Math.max(wanted, WINDOW_BYTES), size - offset))
        const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, offset)
        window = buffer.subarray(0, bytesRead)
        windowStart = offset
      }
      return window.subarray(offset - windowStart, offset - windowStart + wanted)
    },
    close: () => file.close(),
  }
}

/**
 * Opens a regular file. The caller closes it.
 *
 * @throws ServeError MODEL_LOAD_FAILED if it is absent, unreadable or not a regular file.
 */
export async function openFileSource(path: string): Promise<ByteSource> {
  try {
    // A named pipe would otherwise wait for a writer, without end and without a way to give up.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const stat = await file.stat()
    if (stat.isFile()) return fileSource(file, stat.size)
    await file.close()
  } catch (error) {
    throw new ServeError('MODEL_LOAD_FAILED', `cannot read model file '${path}'`, { cause: error })
  }
  throw new ServeError('MODEL_LOAD_FAILED', `model file '${path}' is not a regular file`)
}

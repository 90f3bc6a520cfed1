import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'

/**
 * Reads a file whole. It may be a pipe, or a device that has no end.
 *
 * @throws Error if it has more than `mostBytes`, or cannot be read.
 */
export async function readBounded(path: string, mostBytes: number): Promise<Buffer> {
  const found = await stat(path)
  if (found.isDirectory()) throw new Error('it is a folder, want a file')
  if (found.size > mostBytes) throw tooLong(mostBytes)
  // Files of /proc have no size.
  if (found.isFile() && found.size > 0) return await readFile(path)
  return await collectBounded(createReadStream(path, { highWaterMark: 2 ** 20 }), mostBytes)
}

/** Collects all bytes of a stream, such as standard input. @throws Error if they are more than `mostBytes`. */
export async function collectBounded(
  input: AsyncIterable<Uint8Array | string>,
  mostBytes: number,
): Promise<Buffer> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of input) {
    const piece = Buffer.from(part)
    bytes += piece.byteLength
    if (bytes > mostBytes) throw tooLong(mostBytes)
    parts.push(piece)
  }
  return Buffer.concat(parts)
}

function tooLong(mostBytes: number): Error {
  return new Error(`got more than ${mostBytes} bytes, which is the limit`)
}

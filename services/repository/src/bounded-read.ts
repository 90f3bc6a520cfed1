import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { ServeError } from '@tutti/errors'

/** Opening a named pipe to read it would otherwise wait for a writer, without end and without a way to give up. */
const READ_WITHOUT_WAITING = constants.O_RDONLY | constants.O_NONBLOCK

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads a text file that a person wrote. It never reads more than the bound, whatever the file says of its size.
 *
 * @throws ServeError REPOSITORY_UNREADABLE if it is larger than `maxBytes`, not a regular file or not UTF-8; the system's
 * error if it cannot be opened.
 */
export async function readBounded(path: string, maxBytes: number): Promise<string> {
  const file = await open(path, READ_WITHOUT_WAITING)
  try {
    const { size, isRegular } = await file
      .stat()
      .then((stat) => ({ size: stat.size, isRegular: stat.isFile() }))
    if (!isRegular) throw new ServeError('REPOSITORY_UNREADABLE', `'${path}' is not a regular file`)
    if (size > maxBytes) {
      const text = `'${path}' has ${size} bytes, want at most ${maxBytes}`
      throw new ServeError('REPOSITORY_UNREADABLE', text)
    }
    const bytes = new Uint8Array(size)
    let filled = 0
    while (filled < size) {
      const { bytesRead } = await file.read(bytes, filled, size - filled, filled)
      if (bytesRead === 0) break
      filled += bytesRead
    }
    return decode(path, bytes.subarray(0, filled))
  } finally {
    await file.close()
  }
}

function decode(path: string, bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch (error) {
    throw new ServeError('REPOSITORY_UNREADABLE', `'${path}' is not UTF-8 text`, { cause: error })
  }
}

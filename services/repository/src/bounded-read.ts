import { isUtf8 } from 'node:buffer'
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { ServeError } from '@tutti/errors'

/** Opening a named pipe to read it would otherwise wait for a writer, without end and without a way to give up. */
const READ_WITHOUT_WAITING = constants.O_RDONLY | constants.O_NONBLOCK

const utf8 = new TextDecoder('utf-8', { fatal: true })
/** No text has it. */
const STRAY_BYTES = '\uDC80'

/**
 * Reads a text file that a person wrote. It never reads more than the bound, whatever the file says of its size.
 *
 * @throws ServeError REPOSITORY_UNREADABLE if it is larger than `maxBytes`, not a regular file or not UTF-8; the system's
 * error if it cannot be opened.
 */
export async function readBoundedText(path: string, maxBytes: number): Promise<string> {
  const bytes = await readBytes(path, maxBytes)
  try {
    return utf8.decode(bytes)
  } catch (error) {
    throw new ServeError('REPOSITORY_UNREADABLE', `'${path}' is not UTF-8 text`, { cause: error })
  }
}

/**
 * Reads a config.pbtxt. Its comments may have any bytes, so what is no UTF-8 becomes a lone surrogate, which its parser refuses
 * elsewhere.
 *
 * @throws as `readBoundedText`, but for the bytes.
 */
export async function readConfigText(path: string, maxBytes: number): Promise<string> {
  const bytes = await readBytes(path, maxBytes)
  const text = bytes.toString()
  return isUtf8(bytes) ? text : text.replaceAll('\uFFFD', STRAY_BYTES)
}

async function readBytes(path: string, maxBytes: number): Promise<Buffer> {
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
    const bytes = Buffer.alloc(size)
    let filled = 0
    while (filled < size) {
      const { bytesRead } = await file.read(bytes, filled, size - filled, filled)
      if (bytesRead === 0) break
      filled += bytesRead
    }
    return bytes.subarray(0, filled)
  } finally {
    await file.close()
  }
}

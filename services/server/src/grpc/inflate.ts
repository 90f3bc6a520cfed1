import { promisify } from 'node:util'
import { gunzip, inflate } from 'node:zlib'
import { ServeError } from '@tutti/errors'

const WAYS = new Map([
  ['gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
])

/** What `grpc-accept-encoding` says. */
export const ACCEPTED_ENCODINGS = ['identity', ...WAYS.keys()].join(',')

/**
 * Decompresses a message whose frame says that it is compressed.
 *
 * @param encoding - the call's `grpc-encoding`.
 * @throws ServeError MALFORMED_MESSAGE, UNSUPPORTED for another encoding, MESSAGE_TOO_LARGE beyond `maxBytes`.
 */
export async function inflateMessage(
  message: Buffer,
  encoding: string,
  maxBytes: number,
): Promise<Buffer> {
  if (encoding === 'identity') {
    throw new ServeError(
      'MALFORMED_MESSAGE',
      'message is compressed, but grpc-encoding names no way',
    )
  }
  const way = WAYS.get(encoding)
  if (way === undefined) {
    throw new ServeError(
      'UNSUPPORTED',
      `Received message compressed with unsupported encoding "${encoding}"`,
    )
  }
  try {
    return await way(message, { maxOutputLength: maxBytes })
  } catch (error) {
    if (error instanceof RangeError) {
      throw new ServeError(
        'MESSAGE_TOO_LARGE',
        `Received message that decompresses to a size larger than ${maxBytes}`,
        { cause: error },
      )
    }
    // The code that gRPC's specification wants for it.
    throw new ServeError('MALFORMED_MESSAGE', 'Failed to decompress message', {
      code: 'INTERNAL',
      cause: error,
    })
  }
}

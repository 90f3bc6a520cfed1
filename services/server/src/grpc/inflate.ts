import { createGunzip, createInflate } from 'node:zlib'
import { ServeError } from '@tutti/errors'

const DECODERS = new Map([
  ['gzip', createGunzip],
  ['deflate', createInflate],
])

/** Few pieces of a large message, and little that is inflated and not charged yet. */
const PIECE_BYTES = 64 * 1024

/** What `grpc-accept-encoding` says. */
export const ACCEPTED_ENCODINGS = ['identity', ...DECODERS.keys()].join(',')

export interface InflateOptions {
  /** The call's `grpc-encoding`. */
  readonly encoding: string
  /** Of the inflated message. */
  readonly maxBytes: number
  /** Takes note of inflated bytes as they come; what it throws ends the work, and nothing is kept. */
  readonly charge: (bytes: number) => void
}

/**
 * Decompresses a message whose frame says that it is compressed, piece by piece: a few bytes may become many, so each piece is
 * counted before the next one is made.
 *
 * @throws ServeError MALFORMED_MESSAGE, UNSUPPORTED for another encoding, MESSAGE_TOO_LARGE beyond `maxBytes`, or what `charge`
 * throws.
 */
export async function inflateMessage(message: Buffer, o: InflateOptions): Promise<Buffer> {
  const { encoding, maxBytes, charge } = o
  const decoder = decoderOf(encoding)
  const pieces: Buffer[] = []
  let got = 0
  decoder.end(message)
  try {
    // Leaving the loop by an error destroys the decoder.
    for await (const piece of decoder) {
      got += piece.byteLength
      if (got > maxBytes) throw tooLarge(maxBytes)
      charge(piece.byteLength)
      pieces.push(piece)
    }
  } catch (error) {
    if (error instanceof ServeError) throw error
    // The code that gRPC's specification wants for it.
    throw new ServeError('MALFORMED_MESSAGE', 'Failed to decompress message', {
      code: 'INTERNAL',
      cause: error,
    })
  }
  // A single piece is copied too: it may be a small view of the decoder's memory.
  return Buffer.concat(pieces, got)
}

function decoderOf(encoding: string) {
  if (encoding === 'identity') {
    throw new ServeError(
      'MALFORMED_MESSAGE',
      'message is compressed, but grpc-encoding names no way',
    )
  }
  const create = DECODERS.get(encoding)
  if (create !== undefined) return create({ chunkSize: PIECE_BYTES })
  throw new ServeError(
    'UNSUPPORTED',
    `Received message compressed with unsupported encoding "${encoding}"`,
  )
}

function tooLarge(maxBytes: number): ServeError {
  return new ServeError(
    'MESSAGE_TOO_LARGE',
    `Received message that decompresses to a size larger than ${maxBytes}`,
  )
}

import { setImmediate as nextTurn } from 'node:timers/promises'
import { createGunzip, createInflate } from 'node:zlib'
import { ServeError } from '@tutti/errors'

const DECODERS = new Map([
  ['gzip', createGunzip],
  ['deflate', createInflate],
])

/** Few pieces of a large message, and little that is inflated and not charged yet. */
const PIECE_BYTES = 64 * 1024
/** Bytes that are copied in one turn of the loop, which takes some milliseconds: new memory is slow. */
const TURN_BYTES = 4 * 2 ** 20
/** The end of a gzip file, which says how many bytes it holds (RFC 1952). */
const SIZE_BYTES = 4
/** Bytes that one compressed byte becomes at most (deflate, https://zlib.net/zlib_tech.html). */
const MOST_PER_BYTE = 1032

/** The encodings that `grpc-accept-encoding` names. */
export const ACCEPTED_ENCODINGS = ['identity', ...DECODERS.keys()].join(',')

export interface InflateOptions {
  /** The call's `grpc-encoding`. */
  readonly encoding: string
  /** Bytes of the inflated message. */
  readonly maxBytes: number
  /** Callback that gets the count of inflated bytes, piece by piece. An error that it throws ends the inflation. */
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
  // Pieces that are put together in the end would take all bytes twice. What is not written yet takes no memory.
  let out: Buffer = Buffer.allocUnsafe(Math.min(likelySize(message, encoding), maxBytes))
  let got = 0
  decoder.end(message)
  try {
    // Leaving the loop by an error destroys the decoder.
    for await (const piece of decoder) {
      const end = got + piece.byteLength
      if (end > maxBytes) throw tooLarge(maxBytes)
      charge(piece.byteLength)
      if (end > out.byteLength) out = await grown(out, got, Math.min(2 * end, maxBytes))
      piece.copy(out, got)
      got = end
    }
  } catch (error) {
    if (error instanceof ServeError) throw error
    // The code that gRPC's specification wants for it.
    throw new ServeError('MALFORMED_MESSAGE', 'Failed to decompress message', {
      code: 'INTERNAL',
      cause: error,
    })
  }
  return out.byteLength > 2 * got ? await grown(out, got, got) : out.subarray(0, got)
}

/**
 * Finds the size that a compressed message states, if it can be true. A wrong one costs time, but the inflated message is right.
 */
function likelySize(message: Buffer, encoding: string): number {
  const { byteLength } = message
  if (encoding !== 'gzip' || byteLength < SIZE_BYTES) return PIECE_BYTES
  return Math.min(message.readUInt32LE(byteLength - SIZE_BYTES), byteLength * MOST_PER_BYTE)
}

/** A size that is a lie has as much copied as it told, so the copy is cut up. */
async function grown(bytes: Buffer, used: number, sizeBytes: number): Promise<Buffer> {
  const other = Buffer.allocUnsafe(sizeBytes)
  for (let at = 0; at < used; at += TURN_BYTES) {
    if (at > 0) await nextTurn()
    bytes.copy(other, at, at, Math.min(at + TURN_BYTES, used))
  }
  return other
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
    `Received message that decompresses to a size larger than ${maxBytes} (--grpc-max-message-size)`,
  )
}

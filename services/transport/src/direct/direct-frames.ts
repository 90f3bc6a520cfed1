import { ServeError } from '@tutti/errors'
import { type Place, PlacedReader, READ_BYTES } from '../sockets/placed-reader.ts'

/*
 * A frame: bytes that follow (uint32 LE), kind (1 byte), three zeros, and those bytes. What both ends prove to one another comes before
 * everything else; `alive` has no bytes and says that the sender is there, `last` that it says nothing more and takes nothing more.
 */

export const FRAME_HEAD_BYTES = 8

/** Kinds of frames, by their number. */
const KINDS = [undefined, 'handshake', 'alive', 'message', 'chunk', 'last'] as const

export type FrameKind = Exclude<(typeof KINDS)[number], undefined>

/** Makes the head that goes before a frame's bytes. */
export function encodeFrameHead(kind: FrameKind, size: number): Buffer {
  const head = Buffer.alloc(FRAME_HEAD_BYTES)
  head.writeUInt32LE(size, 0)
  head.writeUInt8(KINDS.indexOf(kind), 4)
  return head
}

/** Finds the place of a frame's bytes. @throws an error for one that must not come now, or not of that size. */
export type PlaceFrame = (kind: FrameKind, size: number) => Place

/** Reads frames. */
export class FrameParser {
  /** Reader to which the bytes go. */
  readonly reader: PlacedReader
  readonly #placeOf: PlaceFrame

  constructor(placeOf: PlaceFrame) {
    this.#placeOf = placeOf
    this.reader = new PlacedReader(this, READ_BYTES)
  }

  /** Reads bytes, see Grammar. @throws ServeError MALFORMED_MESSAGE. */
  read(own: Buffer, start: number, end: number): boolean {
    if (end - start < FRAME_HEAD_BYTES) return false
    const size = own.readUInt32LE(start)
    const kind = KINDS[own.readUInt8(start + 4)]
    if (kind === undefined || own.readUIntLE(start + 5, 3) !== 0) throw frameError('of no kind')
    const place = this.#placeOf(kind, size)
    this.reader.skip(FRAME_HEAD_BYTES)
    this.reader.announce(size, place)
    return true
  }
}

/** Makes the error for an other end that does not speak as a member does. */
export function frameError(what: string): ServeError {
  return new ServeError('MALFORMED_MESSAGE', `direct connection: a frame ${what}`)
}

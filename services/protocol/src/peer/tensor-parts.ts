import { ServeError } from '@tutti/errors'
import { DATATYPES, type Datatype, elementCount, isDatatype, type Shape } from '@tutti/tensor'
import { MESSAGE_BOUNDS } from '../message-bounds.ts'
import type { PeerReader, PeerWriter } from './header-bytes.ts'
import { ALIGNMENT_BYTES, INLINE_LIMIT_BYTES, INLINE_TOTAL_LIMIT_BYTES } from './limits.ts'
import { malformedField } from './peer-error.ts'
import type { OutputHeader, TensorPart } from './peer-message.ts'

/** In the order of their numbers in model_config.proto, which begin with 1. */
const DATATYPES_BY_NUMBER: readonly (Datatype | undefined)[] = [
  undefined,
  ...Object.keys(DATATYPES)
    .filter(isDatatype)
    .toSorted((a, b) => DATATYPES[a].number - DATATYPES[b].number),
]

const BYTES_LENGTH_SIZE = 4
const PART_KINDS = ['inline', 'transfer'] as const

/** Rounds up to where the next inline tensor may begin. */
export function align(position: number): number {
  return Math.ceil(position / ALIGNMENT_BYTES) * ALIGNMENT_BYTES
}

/** Bytes of a part's tensor, wherever they are. */
function partSize(part: TensorPart): number {
  return part.kind === 'inline' ? part.bytes.byteLength : part.size
}

/** What is wrong with `size` bytes for such a tensor, or undefined. Elements of BYTES are not looked at. */
function sizeProblem(header: OutputHeader, size: number): string | undefined {
  const count = elementCount(header.shape)
  const { itemSize } = DATATYPES[header.datatype]
  if (itemSize === null) {
    const least = count * BYTES_LENGTH_SIZE
    const isEnough = count === 0 ? size === 0 : size >= least
    return isEnough ? undefined : `${size} bytes, want ${count === 0 ? 0 : `at least ${least}`}`
  }
  return size === count * itemSize ? undefined : `${size} bytes, want ${count * itemSize}`
}

/** Gathers the inline tensors of a message that is being written. */
export class InlineTensors {
  readonly tensors: Uint8Array[] = []
  /** Bytes from the first tensor's start to the last one's end. */
  size = 0
  #tensorBytes = 0

  add(bytes: Uint8Array): void {
    const size = bytes.byteLength
    this.#tensorBytes += size
    if (size > INLINE_LIMIT_BYTES || this.#tensorBytes > INLINE_TOTAL_LIMIT_BYTES) {
      throw new ServeError(
        'MESSAGE_TOO_LARGE',
        `peer message: an inline tensor of ${size} bytes, ${this.#tensorBytes} with those before, ` +
          `want at most ${INLINE_LIMIT_BYTES} and ${INLINE_TOTAL_LIMIT_BYTES}`,
      )
    }
    if (size === 0) return
    this.tensors.push(bytes)
    this.size = align(this.size) + size
  }
}

/** Hands out views of the inline tensors of a message that is being read. */
export class InlineViews {
  readonly #bytes: Uint8Array
  #position: number
  #tensorBytes = 0

  constructor(bytes: Uint8Array, start: number) {
    this.#bytes = bytes
    this.#position = start
  }

  take(size: number, reader: PeerReader): Uint8Array {
    const at = align(this.#position)
    const left = Math.max(0, this.#bytes.byteLength - at)
    this.#tensorBytes += size
    if (size > INLINE_LIMIT_BYTES || this.#tensorBytes > INLINE_TOTAL_LIMIT_BYTES) {
      throw reader.malformed('size', `${size} bytes inline, want at most ${INLINE_LIMIT_BYTES}`)
    }
    if (size > left) throw reader.malformed('size', `${size} bytes inline and ${left} are left`)
    if (size === 0) return this.#bytes.subarray(0, 0)
    this.#position = at + size
    return this.#bytes.subarray(at, at + size)
  }

  /** @throws ServeError MALFORMED_MESSAGE if not all bytes were taken. */
  end(): void {
    const over = this.#bytes.byteLength - this.#position
    if (over !== 0) throw malformedField('inline', `${over} bytes after the last tensor`)
  }
}

export function writeTensor(
  writer: PeerWriter,
  header: OutputHeader,
  part: TensorPart,
  inline: InlineTensors,
): void {
  const problem = sizeProblem(header, partSize(part))
  if (problem !== undefined) throw malformedField(`tensor "${header.name}"`, problem)
  writer.text(header.name)
  writer.choice(DATATYPES_BY_NUMBER, header.datatype)
  writer.list(header.shape, MESSAGE_BOUNDS.rank, writeExtent)
  writer.choice(PART_KINDS, part.kind)
  if (part.kind === 'inline') inline.add(part.bytes)
  else writer.integer(part.transfer)
  writer.integer(partSize(part))
}

function writeExtent(writer: PeerWriter, extent: number): void {
  writer.integer(extent)
}

/** A tensor's header with where its bytes are; the bytes fit datatype and shape. */
export interface TensorWithPart {
  readonly header: OutputHeader
  readonly part: TensorPart
}

export function readTensor(reader: PeerReader, inline: InlineViews): TensorWithPart {
  const name = reader.text('name')
  const datatype = reader.choice('datatype', DATATYPES_BY_NUMBER)
  if (datatype === undefined) throw reader.malformed('datatype', 'the number 0')
  const shape: Shape = reader.list('shape', MESSAGE_BOUNDS.rank, readExtent)
  const part = readPart(reader, inline)
  const problem = sizeProblem({ name, datatype, shape }, partSize(part))
  if (problem !== undefined) throw reader.malformed('size', problem)
  return { header: { name, datatype, shape }, part }
}

function readExtent(reader: PeerReader): number {
  return reader.integer('extent')
}

function readPart(reader: PeerReader, inline: InlineViews): TensorPart {
  const kind = reader.choice('part', PART_KINDS)
  if (kind === 'inline') return { kind, bytes: inline.take(reader.integer('size'), reader) }
  return { kind, transfer: reader.integer('transfer'), size: reader.integer('size') }
}

import { ServeError, type StatusCode } from '@tutti/errors'
import {
  elementCount,
  type NamedTensor,
  type Parameter,
  type Parameters,
  walkBytesTensor,
} from '@tutti/tensor'
import { badFrame, IN_ARENA, type TensorPlace, type WireResponse } from './frames.ts'

/** Parameters or error of a response, besides its tensors. */
export interface ResponseExtra {
  readonly parameters: Parameters
  readonly error?: ServeError
}

const NO_PARAMETERS: Parameters = new Map()
/** Status codes, by the number of the code of TritonError. */
const CODES: readonly StatusCode[] = [
  'UNKNOWN',
  'INTERNAL',
  'NOT_FOUND',
  'INVALID_ARGUMENT',
  'UNAVAILABLE',
  'UNIMPLEMENTED',
  'ALREADY_EXISTS',
  'CANCELLED',
]

/** Finds TritonError's number of a code; that of INTERNAL for a code that Triton lacks. */
export function toErrorNumber(code: StatusCode): number {
  const number = CODES.indexOf(code)
  return number === -1 ? CODES.indexOf('INTERNAL') : number
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Parses JSON of an instance. @throws ServeError MALFORMED_MESSAGE if it is no object. */
export function parseObject(json: string): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch (error) {
    throw badFrame(`text that is no JSON (${ServeError.from(error).message})`)
  }
  if (!isRecord(value)) throw badFrame('JSON that is no object')
  return value
}

/** Reads a double as Python writes it; NaN for any other text. */
function readDouble(text: string): number {
  return Number(text.replace('inf', 'Infinity'))
}

/** Converts `[name, kind, value]`; numbers come as Python's text. */
function toParameter(entry: unknown): readonly [string, Parameter] {
  const [name, kind, value]: readonly unknown[] = Array.isArray(entry) ? entry : []
  if (typeof name === 'string') {
    if (kind === 'bool' && typeof value === 'boolean') return [name, { kind, value }]
    if (kind === 'string' && typeof value === 'string') return [name, { kind, value }]
    if (kind === 'double' && typeof value === 'string') {
      return [name, { kind, value: readDouble(value) }]
    }
    if (kind === 'int64' && typeof value === 'string' && /^-?\d{1,19}$/.test(value)) {
      return [name, { kind, value: BigInt(value) }]
    }
  }
  throw badFrame(`a parameter that is none: ${JSON.stringify(entry)}`)
}

export function toParameters(value: unknown): Parameters {
  if (value === undefined) return NO_PARAMETERS
  if (!Array.isArray(value)) throw badFrame('parameters that are no list')
  return new Map(value.map(toParameter))
}

function readError(value: unknown): ServeError | undefined {
  if (value === undefined) return undefined
  const { message, code } = isRecord(value) ? value : {}
  if (typeof message !== 'string' || typeof code !== 'number')
    throw badFrame('an error without text')
  return new ServeError('ENGINE_FAILED', message, { code: CODES[code] ?? 'INTERNAL' })
}

/** Reads parameters and error of a response. @throws ServeError MALFORMED_MESSAGE */
export function readExtra({ json }: WireResponse): ResponseExtra {
  if (json === '') return { parameters: NO_PARAMETERS }
  const extra = parseObject(json)
  const error = readError(extra['error'])
  return { parameters: toParameters(extra['parameters']), ...(error && { error }) }
}

/** Sources of the bytes of a frame's tensors. */
export interface TensorBytes {
  readonly payload: Buffer
  /** Position of the next tensor in the payload, in bytes. */
  at: number
  /** Takes a tensor from the arena. @throws ServeError MALFORMED_MESSAGE if the instance may not name that place. */
  readonly fromArena: (place: TensorPlace) => Uint8Array
}

/**
 * Takes tensors out of a frame. Those in the payload are views; `bytes.fromArena` decides for the others.
 *
 * @throws ServeError MALFORMED_MESSAGE if bytes are outside the announced memory or do not fit datatype and shape.
 */
export function takeTensors(places: readonly TensorPlace[], bytes: TensorBytes): NamedTensor[] {
  return places.map((place) => {
    const { name, datatype, shape } = place
    const data = place.place === IN_ARENA ? bytes.fromArena(place) : fromPayload(place, bytes)
    if (datatype === 'BYTES') checkElements(place, data)
    return { name, datatype, shape, data }
  })
}

function fromPayload({ name, size }: TensorPlace, bytes: TensorBytes): Uint8Array {
  const { payload, at } = bytes
  if (at + size > payload.length) {
    throw badFrame(`tensor "${name}" at ${at} of ${payload.length} bytes`)
  }
  bytes.at += size
  return payload.subarray(at, at + size)
}

function checkElements({ name, shape }: TensorPlace, data: Uint8Array): void {
  const found = walkBytesTensor(data)
  if (found === elementCount(shape)) return
  throw badFrame(`${found} elements for tensor "${name}", BYTES [${shape.join(',')}]`)
}

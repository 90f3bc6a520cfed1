import { encodeBytesTensor } from './bytes-tensor.ts'
import { toBrain, toHalf } from './half.ts'
import { inputRefusal } from './input-refusal.ts'
import { DATATYPES, type Datatype } from './tensor.ts'

/** A value as JSON and YAML have it. Text stands for an integer that a double cannot hold. */
export type Scalar = number | string | boolean

type Write = (view: DataView, at: number, value: number | bigint) => void

interface Kind {
  readonly write: Write
  /** Range of an integer; absent for floating point. */
  readonly range?: readonly [least: bigint, most: bigint]
}

const signed = (bits: bigint, write: Write): Kind => ({
  write,
  range: [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n],
})
const unsigned = (bits: bigint, write: Write): Kind => ({ write, range: [0n, (1n << bits) - 1n] })

/** Numbers of all datatypes but BOOL and BYTES, little-endian. */
const KINDS: Readonly<Record<Exclude<Datatype, 'BOOL' | 'BYTES'>, Kind>> = {
  UINT8: unsigned(8n, (view, at, value) => view.setUint8(at, Number(value))),
  UINT16: unsigned(16n, (view, at, value) => view.setUint16(at, Number(value), true)),
  UINT32: unsigned(32n, (view, at, value) => view.setUint32(at, Number(value), true)),
  UINT64: unsigned(64n, (view, at, value) => view.setBigUint64(at, BigInt(value), true)),
  INT8: signed(8n, (view, at, value) => view.setInt8(at, Number(value))),
  INT16: signed(16n, (view, at, value) => view.setInt16(at, Number(value), true)),
  INT32: signed(32n, (view, at, value) => view.setInt32(at, Number(value), true)),
  INT64: signed(64n, (view, at, value) => view.setBigInt64(at, BigInt(value), true)),
  FP16: { write: (view, at, value) => view.setUint16(at, toHalf(Number(value)), true) },
  BF16: { write: (view, at, value) => view.setUint16(at, toBrain(Number(value)), true) },
  FP32: { write: (view, at, value) => view.setFloat32(at, Number(value), true) },
  FP64: { write: (view, at, value) => view.setFloat64(at, Number(value), true) },
}

/**
 * Writes elements as the bytes of a tensor, row-major and little-endian.
 *
 * @param values - in JSON's types: true and false for BOOL, text for BYTES (its UTF-8), numbers for all others. An integer may be text.
 * @throws ServeError INVALID_REQUEST that says which element does not fit the datatype.
 */
export function encodeElements(datatype: Datatype, values: readonly Scalar[]): Uint8Array {
  const wrong = (i: number, want: string): never => {
    throw inputRefusal(`value[${i}]: got ${JSON.stringify(values[i])}, want ${want}`)
  }
  if (datatype === 'BYTES') {
    const encoder = new TextEncoder()
    return encodeBytesTensor(
      values.map((value, i) =>
        typeof value === 'string' ? encoder.encode(value) : wrong(i, 'a text'),
      ),
    )
  }
  if (datatype === 'BOOL') {
    return Uint8Array.from(values, (value, i) =>
      typeof value === 'boolean' ? Number(value) : wrong(i, 'true or false'),
    )
  }
  const kind = KINDS[datatype]
  const size = DATATYPES[datatype].itemSize
  const bytes = new Uint8Array(values.length * size)
  const view = new DataView(bytes.buffer)
  for (const [i, value] of values.entries()) {
    const number = kind.range === undefined ? toNumber(value) : toInteger(value, kind.range)
    const [least, most] = kind.range ?? []
    const want = least === undefined ? 'a number' : `an integer from ${least} to ${most}`
    kind.write(view, i * size, number ?? wrong(i, want))
  }
  return bytes
}

function toNumber(value: Scalar): number | undefined {
  if (typeof value === 'number') return value
  // JSON has no words for these.
  return { NaN: Number.NaN, Infinity: Infinity, '-Infinity': -Infinity }[String(value)]
}

function toInteger(value: Scalar, [least, most]: readonly [bigint, bigint]): bigint | undefined {
  const isInteger =
    typeof value === 'number' ? Number.isSafeInteger(value) : /^-?\d{1,20}$/.test(String(value))
  if (!isInteger) return undefined
  const integer = BigInt(value)
  return integer < least || integer > most ? undefined : integer
}

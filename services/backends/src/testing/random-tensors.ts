import {
  DATATYPES,
  type Datatype,
  decodeBytesTensor,
  elementCount,
  type NamedTensor,
  NUMBER_READERS,
  type Shape,
  type TensorValue,
  toHalf,
} from '@tutti/tensor'
import type { Test } from 'tap'

/** A source of numbers from 0 up to, but without, 1 (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

type Write = (view: DataView, index: number, value: number) => void

const WRITERS: Readonly<Partial<Record<Datatype, Write>>> = {
  BOOL: (view, i, value) => view.setUint8(i, value),
  UINT8: (view, i, value) => view.setUint8(i, value),
  UINT16: (view, i, value) => view.setUint16(2 * i, value, true),
  UINT32: (view, i, value) => view.setUint32(4 * i, value, true),
  UINT64: (view, i, value) => view.setBigUint64(8 * i, BigInt(value), true),
  INT8: (view, i, value) => view.setInt8(i, value),
  INT16: (view, i, value) => view.setInt16(2 * i, value, true),
  INT32: (view, i, value) => view.setInt32(4 * i, value, true),
  INT64: (view, i, value) => view.setBigInt64(8 * i, BigInt(value), true),
  FP16: (view, i, value) => view.setUint16(2 * i, toHalf(value), true),
  FP32: (view, i, value) => view.setFloat32(4 * i, value, true),
  FP64: (view, i, value) => view.setFloat64(8 * i, value, true),
}

/** A tensor of numbers; those of an integer or BOOL are cut to whole ones. */
export function numberTensor(
  name: string,
  datatype: Datatype,
  shape: Shape,
  values: readonly number[],
): NamedTensor {
  const data = new Uint8Array(values.length * (DATATYPES[datatype].itemSize ?? 0))
  const view = new DataView(data.buffer)
  const isFloat = datatype.startsWith('FP')
  values.forEach((value, i) => WRITERS[datatype]?.(view, i, isFloat ? value : Math.trunc(value)))
  return { name, datatype, shape, data }
}

/** A tensor of random numbers between two bounds, the greater of which an integer never has. */
export function randomTensor(
  random: () => number,
  o: {
    readonly name: string
    readonly datatype: Datatype
    readonly shape: Shape
    readonly least?: number
    readonly most?: number
  },
): NamedTensor {
  const [low, high] = DEFAULT_BOUNDS[o.datatype] ?? [-100, 100]
  const { least = low, most = high } = o
  const values = Array.from({ length: elementCount(o.shape) }, () =>
    o.datatype.startsWith('FP')
      ? least + random() * (most - least)
      : Math.floor(least + random() * (most - least)),
  )
  return numberTensor(o.name, o.datatype, o.shape, values)
}

const DEFAULT_BOUNDS: Readonly<Partial<Record<Datatype, readonly [number, number]>>> = {
  BOOL: [0, 2],
  UINT8: [0, 256],
  UINT16: [0, 60_000],
  UINT32: [0, 2 ** 32],
  UINT64: [0, 2 ** 53],
  FP16: [-8, 8],
  FP32: [-8, 8],
  FP64: [-8, 8],
}

/** The numbers of a tensor. */
export function numbersOf({ datatype, data }: TensorValue): number[] {
  const read = NUMBER_READERS[datatype]
  if (read === undefined) throw new Error(`${datatype} are no numbers`)
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const count = data.byteLength / (DATATYPES[datatype].itemSize ?? 1)
  return Array.from({ length: count }, (_, i) => Number(read(view, i)))
}

/** The texts of a tensor. */
export function textsOf({ data }: TensorValue): string[] {
  return decodeBytesTensor(data).map((bytes) => Buffer.from(bytes).toString())
}

/** Largest differences between two tensors that count as equal. Without any, their bytes are equal. */
export interface Tolerance {
  readonly absolute?: number
  readonly relative?: number
  /** Share of the elements that may differ by more. */
  readonly share?: number
}

function head(one?: TensorValue): string | undefined {
  return one && `${one.datatype}[${one.shape.join(',')}]`
}

/** Asserts that a tensor is another one, within a tolerance. NaN equals NaN. */
export function equalTensors(
  t: Test,
  got: TensorValue | undefined,
  want: TensorValue | undefined,
  text: string,
  { absolute = 0, relative = 0, share = 0 }: Tolerance = {},
): void {
  if (got === undefined || want === undefined || head(got) !== head(want)) {
    t.equal(head(got), head(want), text)
    return
  }
  if (got.datatype === 'BYTES') {
    t.same(textsOf(got), textsOf(want), text)
    return
  }
  const [a, b] = [numbersOf(got), numbersOf(want)]
  const differ = a.flatMap((one, i) => {
    const other = b[i] ?? 0
    const isSame = Object.is(one, other) || one === other
    if (isSame || Math.abs(one - other) <= absolute + relative * Math.abs(other)) return []
    return [`[${i}]: got ${one}, want ${other}`]
  })
  if (differ.length <= share * a.length) t.pass(text)
  else t.fail(`${text}: ${differ.length} of ${a.length} differ`, { differ: differ.slice(0, 5) })
}

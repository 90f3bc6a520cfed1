import { bug } from '@tutti/errors'
import { DATATYPES, type Datatype, toBrain, toHalf } from '@tutti/tensor'
import type { Port, Ports } from '../ports.ts'
import { TYPE_NUMBERS } from './element-types.ts'
import {
  buildOnnx,
  type InitializerSpec,
  type OnnxAttributes,
  type OperatorSpec,
  type ValueSpec,
} from './write-onnx.ts'

/** The opset of the graphs: the newest that the kept ONNX Runtime calls released. A test loads a graph of it. */
export const OPSET = 26
/** The names of a graph's inputs begin with it, because inputs and outputs of a built-in may have the same name. */
export const INPUT_PREFIX = 'in/'

/** A value within a graph. */
export type Value = string

/** Writes the operators of a built-in, between the ports of its signature. */
export class OnnxGraph {
  readonly #ports: Ports
  readonly #operators: OperatorSpec[] = []
  readonly #initializers: InitializerSpec[] = []

  constructor(ports: Ports) {
    this.#ports = ports
  }

  /** Tells whether an input is fed. */
  has(name: string): boolean {
    return this.#ports.inputs.some((port) => port.name === name)
  }

  /** Returns datatype and dims of an input. */
  port(name: string): Port {
    const port = this.#ports.inputs.find((one) => one.name === name)
    if (port === undefined) throw bug(`there is no input ${name}`)
    return port
  }

  input(name: string): Value {
    return `${INPUT_PREFIX}${this.port(name).name}`
  }

  /** Adds an operator with one output. @param inputs - '' for one that is left out. */
  op(op: string, inputs: readonly Value[], attributes: OnnxAttributes = {}): Value {
    const [output = ''] = this.ops(op, 1, inputs, attributes)
    return output
  }

  /** Adds an operator with several outputs. */
  ops(
    op: string,
    outputs: number,
    inputs: readonly Value[],
    attributes: OnnxAttributes = {},
  ): readonly Value[] {
    const place = this.#operators.length
    const names = Array.from({ length: outputs }, (_, i) => `v${place}_${i}`)
    this.#operators.push({ op, inputs, outputs: names, attributes })
    return names
  }

  /** Adds a constant. @param dims - default: those of a list. */
  constant(
    datatype: Datatype,
    values: readonly number[],
    dims: readonly number[] = [values.length],
  ): Value {
    const name = `c${this.#initializers.length}`
    this.#initializers.push({ name, type: datatype, dims, data: toData(datatype, values) })
    return name
  }

  /** Adds a constant without dimensions. */
  scalar(datatype: Datatype, value: number): Value {
    return this.constant(datatype, [value], [])
  }

  /** Adds a list of INT64, as operators want axes, sizes and repeats. */
  list(...values: readonly number[]): Value {
    return this.constant('INT64', values)
  }

  /** Converts a value to a datatype, which may be the one that it has. */
  cast(value: Value, to: Datatype): Value {
    return this.op('Cast', [value], { to: TYPE_NUMBERS.get(to) ?? 0 })
  }

  /** Makes a value an output. */
  output(name: string, value: Value): void {
    this.#operators.push({ op: 'Identity', inputs: [value], outputs: [name] })
  }

  /** @returns the bytes of a ModelProto. */
  finish(name: string): Uint8Array<ArrayBuffer> {
    return buildOnnx({
      name,
      opset: OPSET,
      inputs: this.#ports.inputs.map((port) => toValue(port, `${INPUT_PREFIX}${port.name}`)),
      outputs: this.#ports.outputs.map((port) => toValue(port, port.name)),
      operators: this.#operators,
      initializers: this.#initializers,
    })
  }
}

/** Unknown extents get names, or the runtime would take two of them to be equal. */
function toValue({ datatype, dims }: Port, name: string): ValueSpec {
  const extents = dims.map((extent, i) => (extent === -1 ? `${name}/${i}` : extent))
  return { name, type: datatype, dims: extents }
}

type Write = (view: DataView, at: number, value: number) => void

const WRITERS: Readonly<Record<Exclude<Datatype, 'BYTES'>, Write>> = {
  BOOL: (view, at, value) => view.setUint8(at, value),
  UINT8: (view, at, value) => view.setUint8(at, value),
  UINT16: (view, at, value) => view.setUint16(at, value, true),
  UINT32: (view, at, value) => view.setUint32(at, value, true),
  UINT64: (view, at, value) => view.setBigUint64(at, BigInt(value), true),
  INT8: (view, at, value) => view.setInt8(at, value),
  INT16: (view, at, value) => view.setInt16(at, value, true),
  INT32: (view, at, value) => view.setInt32(at, value, true),
  INT64: (view, at, value) => view.setBigInt64(at, BigInt(value), true),
  FP16: (view, at, value) => view.setUint16(at, toHalf(value), true),
  BF16: (view, at, value) => view.setUint16(at, toBrain(value), true),
  FP32: (view, at, value) => view.setFloat32(at, value, true),
  FP64: (view, at, value) => view.setFloat64(at, value, true),
}

/** @returns the little-endian bytes of numbers. */
function toData(datatype: Datatype, values: readonly number[]): Uint8Array {
  if (datatype === 'BYTES') throw bug('a constant of a graph is a number')
  const { itemSize } = DATATYPES[datatype]
  const data = new Uint8Array(values.length * itemSize)
  const view = new DataView(data.buffer)
  const write = WRITERS[datatype]
  values.forEach((value, i) => write(view, i * itemSize, value))
  return data
}

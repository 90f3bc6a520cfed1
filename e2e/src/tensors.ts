import type { OutgoingRequest } from '@tutti/protocol'

/** A tensor with its bytes, as the codec takes and gives it. */
export type Tensor = OutgoingRequest['inputs'][number]

export function fp32(
  name: string,
  values: readonly number[] | Float32Array<ArrayBuffer>,
  shape: readonly number[] = [values.length],
): Tensor {
  return { name, datatype: 'FP32', shape, data: bytesOf(new Float32Array(values)) }
}

export function int64(name: string, values: readonly number[]): Tensor {
  const data = bytesOf(BigInt64Array.from(values, BigInt))
  return { name, datatype: 'INT64', shape: [values.length], data }
}

/** Inputs of `slow` and `ens_slow`: about 0.2 ms a round on one core that has nothing else to do. */
export function slowInputs(rounds: number): readonly Tensor[] {
  return [fp32('x', [1]), int64('rounds', [rounds])]
}

/** The 16 numbers from `first` on, as a batch of one: the input of most batching fixtures. */
export function row(name: string, first = 0): Tensor {
  return fp32(
    name,
    Array.from({ length: 16 }, (_, i) => first + i),
    [1, 16],
  )
}

/** The values of an FP32 tensor. */
export function toFloats({ data }: Pick<Tensor, 'data'>): Float32Array {
  return new Float32Array(Uint8Array.from(data).buffer)
}

function bytesOf(values: Float32Array<ArrayBuffer> | BigInt64Array<ArrayBuffer>): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
}

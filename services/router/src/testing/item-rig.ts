import type { PlanForEach } from '@tutti/graph'
import { encodeBytesTensor, type NamedTensor } from '@tutti/tensor'
import { floats, toFloats } from '@tutti/tensor/testing'
import { withForEach } from '../calls/mapped-call.ts'
import { createRepeatRig, type RepeatedCall, type RepeatRigOptions } from './repeat-rig.ts'

const FOR_EACH: PlanForEach = {
  items: ['X'],
  maxItems: 64,
  maxParallel: 16,
  gather: 'Stack',
  itemDefault: undefined,
}
/** The config.pbtxt of a model without batches. */
const PLAIN = `
  input { name: "X" data_type: TYPE_FP32 dims: [ 2 ] }
  output { name: "Y" data_type: TYPE_FP32 dims: [ -1, 3 ] }
  output { name: "Z" data_type: TYPE_FP32 dims: [ -1 ] }`
/** The same, with batches of up to four. */
export const BATCHING = `max_batch_size: 4 ${PLAIN}`

/** A tensor of one integer. */
export function integers(name: string, value: number, datatype: 'INT64' | 'INT32' = 'INT64') {
  const data = datatype === 'INT64' ? BigInt64Array.of(BigInt(value)) : Int32Array.of(value)
  return { name, datatype, shape: [1], data: new Uint8Array(data.buffer) } as const
}

/** A tensor of texts. */
export function texts(
  name: string,
  values: readonly string[],
  shape: readonly number[],
): NamedTensor {
  const data = encodeBytesTensor(values.map((one) => new TextEncoder().encode(one)))
  return { name, datatype: 'BYTES', shape, data }
}

/** Shows the bytes of a tensor as text. */
export function decoded({ data }: Pick<NamedTensor, 'data'>): string {
  return new TextDecoder('latin1').decode(data)
}

/** Items 0, 1, 2 and so on, each of two numbers. */
export function items(count: number, name = 'X'): NamedTensor {
  return floats(
    name,
    Array.from({ length: 2 * count }, (_, i) => Math.trunc(i / 2)),
    [count, 2],
  )
}

/** Makes the call of a step `read` for each item of `X`. */
export function createItemRig(
  forEach: Partial<PlanForEach>,
  o: Partial<Omit<RepeatRigOptions, 'wrap'>> & Pick<RepeatRigOptions, 'inputs'>,
) {
  const wrap: RepeatRigOptions['wrap'] = (next) => withForEach({ ...FOR_EACH, ...forEach }, next)
  return createRepeatRig({ model: PLAIN, ...o, wrap })
}

/** The first number of each input that is cut. */
export function begins(calls: readonly RepeatedCall[]): readonly (number | undefined)[] {
  return calls.map(({ request }) => toFloats(request.inputs[0]?.data)[0])
}

/** Shows outputs of numbers. */
export function shown(answer: { readonly outputs: readonly NamedTensor[] } | undefined) {
  return answer?.outputs.map(({ name, shape, data, datatype }) => {
    if (datatype === 'FP32') return [name, shape, [...toFloats(data)]]
    if (datatype === 'BOOL') return [name, shape, [...data]]
    return [name, shape, [...new BigInt64Array(data.slice().buffer)].map(Number)]
  })
}

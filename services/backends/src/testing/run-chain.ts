import {
  DATATYPES,
  decodeBytesTensor,
  encodeBytesTensor,
  type NamedTensor,
  type TensorValue,
} from '@tutti/tensor'
import type { Test } from 'tap'
import type { RunBuiltin } from './builtin-steps.ts'
import { numberTensor } from './random-tensors.ts'
import type { ChainConstant, ChainStep } from './step-kinds/step-kind.ts'

type Tensors = ReadonlyMap<string, TensorValue>

/** Runs a chain of built-ins as an Ensemble does. @returns all tensors: inputs by their names, others by `STEP.OUTPUT`. */
export async function runChain(
  t: Test,
  run: RunBuiltin,
  { steps, inputs }: { readonly steps: readonly ChainStep[]; readonly inputs: Tensors },
): Promise<Tensors> {
  const tensors = new Map(inputs)
  for (const step of steps) {
    for (const output of await runStep(t, run, step, tensors)) {
      tensors.set(`${step.name}.${output.name}`, output)
    }
  }
  return tensors
}

async function runStep(
  t: Test,
  run: RunBuiltin,
  { name: step, builtin, inputMap, constants = {}, forEach }: ChainStep,
  tensors: Tensors,
): Promise<readonly NamedTensor[]> {
  const read = (from: string): TensorValue => {
    const tensor = tensors.get(from)
    if (tensor === undefined) throw new Error(`${step}: there is no ${from}`)
    return tensor
  }
  const feeding = Object.entries(inputMap).map(([name, from]) => ({ ...read(from), name }))
  if (forEach === undefined) {
    const fixed = Object.entries(constants).map(([name, constant]) => toTensor(name, constant))
    return await run(t, builtin, [...feeding, ...fixed])
  }
  const cut = Object.entries(forEach.items).map(
    ([name, from]) => [name, rowsOf(read(from))] as const,
  )
  const made: Tensors[] = []
  for (const i of cut[0]?.[1].keys() ?? []) {
    const inputs = new Map<string, TensorValue>(feeding.map((one) => [one.name, one]))
    for (const [name, rows] of cut) {
      const row = rows[i]
      if (row === undefined) throw new Error(`${step}: there is no item ${i} of ${name}`)
      inputs.set(name, row)
    }
    made.push(await runChain(t, run, { steps: forEach.steps, inputs }))
  }
  return Object.entries(forEach.outputs).map(([name, from]) =>
    stack(
      name,
      made.map((one) => one.get(from)),
    ),
  )
}

function toTensor(
  name: string,
  { datatype, value, shape = [value.length] }: ChainConstant,
): NamedTensor {
  return numberTensor(name, datatype, shape, value)
}

/** Cuts a tensor into its items along axis 0. */
function rowsOf({ datatype, shape, data }: TensorValue): readonly TensorValue[] {
  const [count = 0, ...rest] = shape
  if (rest.length === 0) throw new Error('items would have no dimension')
  const size = rest.reduce((product, extent) => product * extent, 1)
  return Array.from({ length: count }, (_, i) => {
    return { datatype, shape: rest, data: partOf(datatype, data, i * size, (i + 1) * size) }
  })
}

function partOf(
  datatype: TensorValue['datatype'],
  data: Uint8Array,
  first: number,
  end: number,
): Uint8Array {
  if (datatype === 'BYTES') return encodeBytesTensor(decodeBytesTensor(data).slice(first, end))
  const { itemSize } = DATATYPES[datatype]
  return data.subarray(first * itemSize, end * itemSize)
}

/** Gathers the outputs of the items. */
function stack(name: string, items: readonly (TensorValue | undefined)[]): NamedTensor {
  const [first] = items
  if (first === undefined) throw new Error(`${name}: no item made it`)
  const same = items.filter((item) => item?.shape.join() === first.shape.join())
  if (same.length < items.length) throw new Error(`${name}: items of unequal shapes`)
  const data = Buffer.concat(items.map((item) => item?.data ?? new Uint8Array()))
  return {
    name,
    datatype: first.datatype,
    shape: [items.length, ...first.shape],
    data: new Uint8Array(data),
  }
}

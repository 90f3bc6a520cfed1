import type { Random } from '../../attacks/random.ts'
import { DECOUPLED, type InputSpec, MODELS, type ModelSpec } from './models.ts'

/** The value of a parameter, with the field of InferParameter that carries it. */
export interface Parameter {
  readonly kind: 'bool' | 'int64' | 'string' | 'double' | 'uint64'
  readonly value: boolean | number | string
}
export type Parameters = Readonly<Record<string, Parameter>>

export type Element = number | string | boolean

export interface InputPart {
  readonly name: string
  readonly datatype: string
  readonly shape: readonly (number | string)[]
  readonly parameters: Parameters
  readonly data: readonly Element[]
}

export interface OutputPart {
  readonly name: string
  readonly parameters: Parameters
}

/** An inference request before it takes the form of a protocol. */
export interface InferParts {
  readonly model: string
  readonly version: string
  readonly id: string
  readonly parameters: Parameters
  readonly inputs: readonly InputPart[]
  readonly outputs: readonly OutputPart[]
}

const INTEGERS: Readonly<Record<string, readonly [string, string]>> = {
  UINT8: ['0', '255'],
  UINT16: ['0', '65535'],
  UINT32: ['0', '4294967295'],
  UINT64: ['0', '18446744073709551615'],
  INT8: ['-128', '127'],
  INT16: ['-32768', '32767'],
  INT32: ['-2147483648', '2147483647'],
  INT64: ['-9223372036854775808', '9223372036854775807'],
}
const TEXTS = [
  '',
  'a',
  'hello',
  'ümläut',
  '日本',
  'a"b\\c',
  'line\nbreak',
  '0',
  'x'.repeat(300),
] as const
const FLOATS = [0, 1, -1, 0.5, 1.1, -2.25, 1e-7, 3.4e38, 16_777_217, 1e10, 123456.789] as const

/** A value that a datatype can have; integers beyond 2^53 as text. */
export function elementOf(datatype: string, { pick, chance, oneOf }: Random): Element {
  if (datatype === 'BOOL') return chance(0.5)
  if (datatype === 'BYTES') return oneOf(TEXTS)
  const [least, most] = INTEGERS[datatype] ?? []
  if (least === undefined || most === undefined)
    return datatype === 'FP16' ? pick(100) / 4 : oneOf(FLOATS)
  return chance(0.2) ? oneOf([least, most]) : pick(100)
}

const KINDS = [0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15, 16, 20, 21, 22, 23, 24] as const

function inputPart(input: InputSpec, batch: number, random: Random): InputPart {
  const extents = input.dims.map((extent) => (extent === -1 ? random.pick(5) : extent))
  const shape = batch === 0 ? extents : [batch, ...extents]
  const count = shape.reduce((product, extent) => product * extent, 1)
  const data = Array.from({ length: count }, () => {
    if (input.name === 'KIND') return random.oneOf(KINDS)
    if (input.name === 'COUNT') return random.oneOf([0, 1, 2, 3, 100])
    return elementOf(input.datatype, random)
  })
  return { name: input.name, datatype: input.datatype, shape, parameters: {}, data }
}

/** A request that a server must answer, with a subset of the outputs now and then. */
export function validParts(model: ModelSpec, random: Random): InferParts {
  const { chance, pick, oneOf } = random
  const batch = model.maxBatch === 0 ? 0 : 1 + pick(model.maxBatch)
  const optional = model.inputs.filter(({ isOptional }) => isOptional)
  const one = optional.length > 1 ? oneOf(optional) : undefined
  const sent = model.inputs.filter(
    (input) =>
      input.isOptional !== true || input === one || chance(optional.length > 1 ? 0.2 : 0.5),
  )
  const named = model.outputs.filter(() => chance(0.5))
  return {
    model: model.name,
    version: chance(0.2) ? oneOf(model.versions ?? ['1']) : '',
    id: chance(0.5) ? `r${pick(100)}` : '',
    parameters: {},
    inputs: sent.map((input) => inputPart(input, batch, random)),
    // The model `types` can give only outputs whose inputs were sent.
    outputs: (model.name === 'types' ? [] : named).map((name) => ({ name, parameters: {} })),
  }
}

export function anyModel({ oneOf, chance }: Random, decoupledShare = 0.03): ModelSpec {
  return oneOf(chance(decoupledShare) ? DECOUPLED : MODELS)
}

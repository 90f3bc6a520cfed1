import type { Random } from '../../attacks/random.ts'
import { NO_MODELS, VERSIONS } from './models.ts'
import {
  elementOf,
  type InferParts,
  type InputPart,
  type OutputPart,
  type Parameter,
} from './parts.ts'

type Mutation = (parts: InferParts, random: Random) => InferParts

const DATATYPES = [
  'INT32',
  'FP32',
  'BYTES',
  'BOOL',
  'INT64',
  'FP16',
  'BF16',
  'UINT8',
  'FP64',
  'NOPE',
  '',
  'int32',
  'TYPE_INT32',
  'STRING',
] as const

const VALUES: readonly Parameter[] = [
  { kind: 'int64', value: 0 },
  { kind: 'int64', value: 1 },
  { kind: 'int64', value: 7 },
  { kind: 'int64', value: -1 },
  { kind: 'int64', value: '9223372036854775807' },
  { kind: 'uint64', value: 3 },
  { kind: 'bool', value: true },
  { kind: 'bool', value: false },
  { kind: 'string', value: '' },
  { kind: 'string', value: 'text' },
  { kind: 'double', value: 2.5 },
  { kind: 'double', value: 3 },
]
const KEYS = [
  'priority',
  'timeout',
  'sequence_id',
  'sequence_start',
  'sequence_end',
  'triton_enable_empty_final_response',
  'triton_own',
  'custom',
  'other key',
  '',
  'binary_data_output',
  'classification',
] as const
const TENSOR_KEYS = [
  'classification',
  'binary_data',
  'binary_data_size',
  'shared_memory_region',
  'shared_memory_offset',
  'shared_memory_byte_size',
  'custom',
] as const

function changeInput(
  parts: InferParts,
  { pick }: Random,
  change: (input: InputPart) => readonly InputPart[],
): InferParts {
  const victim = pick(parts.inputs.length)
  return {
    ...parts,
    inputs: parts.inputs.flatMap((input, at) => (at === victim ? change(input) : [input])),
  }
}

function changeOutput(
  parts: InferParts,
  random: Random,
  change: (output: OutputPart) => readonly OutputPart[],
): InferParts {
  const outputs = parts.outputs.length > 0 ? parts.outputs : [{ name: 'Y', parameters: {} }]
  const victim = random.pick(outputs.length)
  return {
    ...parts,
    outputs: outputs.flatMap((output, at) => (at === victim ? change(output) : [output])),
  }
}

function changedShape(shape: InputPart['shape'], { pick, oneOf }: Random): InputPart['shape'] {
  const at = pick(shape.length)
  const put = (extent: number | string): InputPart['shape'] =>
    shape.map((old, i) => (i === at ? extent : old))
  return oneOf([
    () => [1, ...shape],
    () => [...shape, 1],
    () => shape.slice(1),
    () => [],
    () => put(0),
    () => put(-1),
    () => put(-2),
    () => put(9),
    () => put(1),
    () => shape.toReversed(),
  ])()
}

/** Changes by which a request is wrong in every protocol, or only unusual. */
const MUTATIONS: readonly Mutation[] = [
  (parts, random) => ({ ...parts, model: random.oneOf(NO_MODELS) }),
  (parts, random) => ({ ...parts, version: random.oneOf(VERSIONS) }),
  (parts, random) => ({ ...parts, id: random.oneOf(['', ' ', 'a b', 'ü', '"', '1'.repeat(200)]) }),
  (parts, random) => changeInput(parts, random, () => []),
  (parts, random) => changeInput(parts, random, (input) => [input, { ...input, name: 'EXTRA' }]),
  (parts, random) =>
    changeInput(parts, random, (input) => [
      { ...input, name: random.oneOf(['NOPE', '', 'x', ' X']) },
    ]),
  (parts, random) => changeInput(parts, random, (input) => [input, input]),
  (parts, random) =>
    changeInput(parts, random, (input) => [{ ...input, datatype: random.oneOf(DATATYPES) }]),
  (parts, random) =>
    changeInput(parts, random, (input) => [{ ...input, shape: changedShape(input.shape, random) }]),
  (parts, random) =>
    changeInput(parts, random, (input) => [{ ...input, shape: changedShape(input.shape, random) }]),
  (parts, random) =>
    changeInput(parts, random, (input) => [{ ...input, data: input.data.slice(1) }]),
  (parts, random) =>
    changeInput(parts, random, (input) => [
      { ...input, data: [...input.data, elementOf(input.datatype, random)] },
    ]),
  (parts, random) => changeInput(parts, random, (input) => [{ ...input, data: [] }]),
  (parts, random) =>
    changeInput(parts, random, (input) => [
      {
        ...input,
        parameters: { ...input.parameters, [random.oneOf(TENSOR_KEYS)]: random.oneOf(VALUES) },
      },
    ]),
  (parts, random) =>
    changeOutput(parts, random, () => [
      { name: random.oneOf(['NOPE', '', 'X', 'y']), parameters: {} },
    ]),
  (parts, random) => changeOutput(parts, random, (output) => [output, output]),
  (parts, random) =>
    changeOutput(parts, random, (output) => [
      { ...output, parameters: { classification: random.oneOf(VALUES) } },
    ]),
  (parts, random) =>
    changeOutput(parts, random, (output) => [
      {
        ...output,
        parameters: { ...output.parameters, [random.oneOf(TENSOR_KEYS)]: random.oneOf(VALUES) },
      },
    ]),
  withParameter,
  withParameter,
  withParameter,
  (parts, random) => withParameter(withParameter(parts, random), random),
]

function withParameter(parts: InferParts, { oneOf }: Random): InferParts {
  return { ...parts, parameters: { ...parts.parameters, [oneOf(KEYS)]: oneOf(VALUES) } }
}

/** Makes a request wrong or unusual in one way; now and then in two, if no other input can be the one that is reported. */
export function mutated(parts: InferParts, random: Random): InferParts {
  const once = parts.inputs.length === 0 ? parts : random.oneOf(MUTATIONS)(parts, random)
  return once.inputs.length === 1 && random.chance(0.2)
    ? random.oneOf(MUTATIONS)(once, random)
    : once
}

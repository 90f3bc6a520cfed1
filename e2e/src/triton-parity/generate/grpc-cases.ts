import type { Random } from '../../attacks/random.ts'
import type { Call, GrpcCall } from '../case.ts'
import { DECOUPLED, MODELS, NO_MODELS, VERSIONS } from './models.ts'
import { mutated } from './mutations.ts'
import {
  anyModel,
  type Element,
  type InferParts,
  type InputPart,
  type Parameters,
  validParts,
} from './parts.ts'

const WIDTHS: Readonly<Record<string, number>> = {
  BOOL: 1,
  UINT8: 1,
  INT8: 1,
  UINT16: 2,
  INT16: 2,
  FP16: 2,
  UINT32: 4,
  INT32: 4,
  FP32: 4,
}
const CONTENTS: Readonly<Record<string, string>> = {
  BOOL: 'bool_contents',
  INT8: 'int_contents',
  INT16: 'int_contents',
  INT32: 'int_contents',
  INT64: 'int64_contents',
  UINT8: 'uint_contents',
  UINT16: 'uint_contents',
  UINT32: 'uint_contents',
  UINT64: 'uint64_contents',
  FP32: 'fp32_contents',
  FP64: 'fp64_contents',
  BYTES: 'bytes_contents',
}

/** The bytes of elements; those that do not fit a datatype, because a mutation has changed it, are zero. */
export function toBytes(datatype: string, data: readonly Element[]): Buffer {
  return Buffer.concat(data.map((element) => elementBytes(datatype, element)))
}

function elementBytes(datatype: string, element: Element): Buffer {
  if (datatype === 'BYTES') {
    const text = Buffer.from(String(element))
    const length = Buffer.alloc(4)
    length.writeUInt32LE(text.byteLength)
    return Buffer.concat([length, text])
  }
  const bytes = Buffer.alloc(WIDTHS[datatype] ?? 8)
  const number = Number(element) || 0
  if (datatype === 'FP32') bytes.writeFloatLE(number)
  else if (datatype === 'FP64') bytes.writeDoubleLE(number)
  else if (datatype === 'FP16') bytes.writeUInt16LE(halfBits(number))
  else {
    const integer =
      typeof element === 'string' && /^-?\d+$/.test(element)
        ? BigInt(element)
        : BigInt(Math.trunc(number))
    const eight = Buffer.alloc(8)
    eight.writeBigUInt64LE(BigInt.asUintN(64, integer))
    eight.copy(bytes)
  }
  return bytes
}

/** Finds the bits of a half for a multiple of 1/4 below 64, which it holds exactly. */
function halfBits(value: number): number {
  if (value < 0.25 || value > 64) return 0
  const exponent = Math.floor(Math.log2(value))
  return ((exponent + 15) << 10) | Math.round((value / 2 ** exponent - 1) * 1024)
}

function toParameters(parameters: Parameters): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(parameters).map(([key, { kind, value }]) => [key, { [`${kind}_param`]: value }]),
  )
}

function toTensor(input: InputPart, isTyped: boolean): Record<string, unknown> {
  const { name, datatype, shape, parameters, data } = input
  const field = CONTENTS[datatype]
  const items =
    field === 'bytes_contents'
      ? data.map((text) => Buffer.from(String(text)).toString('base64'))
      : data
  return {
    name,
    datatype,
    shape,
    parameters: toParameters(parameters),
    ...(isTyped && field !== undefined && data.length > 0 && { contents: { [field]: items } }),
  }
}

/** A ModelInferRequest, with typed contents or raw ones. */
export function toGrpcRequest(parts: InferParts, isTyped: boolean): Record<string, unknown> {
  return {
    model_name: parts.model,
    model_version: parts.version,
    id: parts.id,
    parameters: toParameters(parts.parameters),
    inputs: parts.inputs.map((input) => toTensor(input, isTyped)),
    outputs: parts.outputs.map(({ name, parameters }) => ({
      name,
      parameters: toParameters(parameters),
    })),
    ...(!isTyped && {
      raw_input_contents: parts.inputs.map(({ datatype, data }) =>
        toBytes(datatype, data).toString('base64'),
      ),
    }),
  }
}

/** Damages what can be wrong only with a message of gRPC: which of its parts carries the elements. */
function damaged(
  request: Record<string, unknown>,
  parts: InferParts,
  { oneOf, chance }: Random,
): Record<string, unknown> {
  const raw = Array.isArray(request['raw_input_contents'])
    ? request['raw_input_contents'].map(String)
    : []
  const inputs = Array.isArray(request['inputs']) ? request['inputs'].map(Object) : []
  const [first, ...rest] = inputs
  const bytes = Buffer.from(raw[0] ?? '', 'base64')
  return oneOf([
    () => ({ ...request, raw_input_contents: raw.slice(1) }),
    () => ({ ...request, raw_input_contents: [...raw, 'AAAA'] }),
    () => ({
      ...request,
      raw_input_contents: [bytes.subarray(0, -1).toString('base64'), ...raw.slice(1)],
    }),
    () => ({
      ...request,
      raw_input_contents: [
        Buffer.concat([bytes, Buffer.of(1)]).toString('base64'),
        ...raw.slice(1),
      ],
    }),
    () => ({ ...request, raw_input_contents: ['', ...raw.slice(1)] }),
    () => ({ ...request, inputs: [{ ...first, contents: { fp32_contents: [1, 2] } }, ...rest] }),
    () => ({ ...request, inputs: [{ ...first, contents: { bytes_contents: ['AAAA'] } }, ...rest] }),
    () => ({
      ...request,
      inputs: [{ ...first, contents: { int_contents: [1, 2], fp32_contents: [1] } }, ...rest],
    }),
    () => ({
      ...request,
      raw_input_contents: [],
      inputs: [{ ...first, contents: { int_contents: [300, 70_000] } }, ...rest],
    }),
    () => ({ ...request, raw_input_contents: [], inputs: [{ ...first, contents: {} }, ...rest] }),
    () => ({ ...request, inputs: [] }),
    () => ({ ...request, parameters: { ...Object(request['parameters']), empty: {} } }),
    () => ({ ...request, inputs: parts.inputs.map((input) => toTensor(input, chance(0.5))) }),
  ])()
}

function inferRequest(random: Random, decoupledShare?: number): Record<string, unknown> {
  const parts = validParts(anyModel(random, decoupledShare), random)
  const asked = random.chance(0.7) ? mutated(parts, random) : parts
  const request = toGrpcRequest(asked, random.chance(0.4))
  return random.chance(0.15) ? damaged(request, asked, random) : request
}

/** ModelInfer. */
export function inferCase(random: Random): readonly Call[] {
  return [{ rpc: 'ModelInfer', requests: [inferRequest(random)] }]
}

/** ModelStreamInfer: some requests to models that answer once, or one to a model that answers any number of times. */
export function streamCase(random: Random): readonly Call[] {
  const { chance, oneOf, pick } = random
  const metadata = chance(0.1) ? { triton_grpc_error: 'true' } : {}
  const base = { rpc: 'ModelStreamInfer', metadata }
  if (chance(0.5)) {
    const model = oneOf(DECOUPLED)
    const parts = chance(0.5)
      ? mutated(validParts(model, random), random)
      : validParts(model, random)
    const parameters = chance(0.3)
      ? {
          ...parts.parameters,
          triton_enable_empty_final_response: { kind: 'bool', value: chance(0.7) } as const,
        }
      : parts.parameters
    const isUnordered = model.name.startsWith('ens_')
    return [
      { ...base, requests: [toGrpcRequest({ ...parts, parameters }, chance(0.5))], isUnordered },
    ]
  }
  // The order of an error and of answers before it is a race.
  const count = metadata.triton_grpc_error === undefined ? 1 + pick(3) : 1
  return [{ ...base, requests: Array.from({ length: count }, () => inferRequest(random, 0)) }]
}

const NAMES = [...MODELS, ...DECOUPLED].map(({ name }) => name)

/** The calls that tell about servers and models. */
export function metadataCase({ oneOf, chance }: Random): readonly GrpcCall[] {
  const rpc = oneOf([
    'ModelReady',
    'ModelReady',
    'ModelMetadata',
    'ModelMetadata',
    'ModelConfig',
    'ModelConfig',
    'ModelStatistics',
    'ModelStatistics',
    'RepositoryIndex',
    'ServerLive',
    'ServerReady',
    'ServerMetadata',
    'Check',
  ])
  if (rpc === 'RepositoryIndex') {
    return [{ rpc, requests: [{ ready: chance(0.5), repository_name: chance(0.3) ? 'x' : '' }] }]
  }
  if (rpc.startsWith('Server')) return [{ rpc, requests: [{}] }]
  if (rpc === 'Check')
    return [{ rpc, requests: [{ service: oneOf(['', 'inference.GRPCInferenceService', 'x']) }] }]
  const name = chance(0.75) ? oneOf(NAMES) : oneOf([...NO_MODELS, ''])
  return [{ rpc, requests: [{ name, version: chance(0.5) ? oneOf(VERSIONS) : '' }] }]
}

/** Bytes that are no message, or one with an unknown field. */
export function malformedCase(random: Random): readonly GrpcCall[] {
  const { oneOf, bytes, pick, chance } = random
  const rpc = oneOf([
    'ModelInfer',
    'ModelReady',
    'ModelConfig',
    'RepositoryIndex',
    'ModelStatistics',
  ])
  const known = Buffer.from([0x0a, 5, ...Buffer.from('batch')])
  const message = chance(0.5)
    ? Buffer.concat([known, Buffer.from([0xf8, 0x07, pick(100)])])
    : bytes(1 + pick(20))
  return [{ rpc, requests: [], bytes: message.toString('base64') }]
}

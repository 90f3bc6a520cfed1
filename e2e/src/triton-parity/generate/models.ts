/** An input of a model, as its configuration declares it, without the batch. */
export interface InputSpec {
  readonly name: string
  readonly datatype: string
  readonly dims: readonly number[]
  readonly isOptional?: boolean
}

/** A model of the repository: what requests to it look like. */
export interface ModelSpec {
  readonly name: string
  /** 0: requests have no batch. */
  readonly maxBatch: number
  readonly inputs: readonly InputSpec[]
  readonly outputs: readonly string[]
  readonly isDecoupled?: boolean
  readonly versions?: readonly string[]
}

const DATATYPES = [
  'BOOL',
  'UINT8',
  'UINT16',
  'UINT32',
  'UINT64',
  'INT8',
  'INT16',
  'INT32',
  'INT64',
  'FP16',
  'FP32',
  'FP64',
  'BYTES',
] as const

function one(name: string, datatype: string, ...dims: number[]): InputSpec {
  return { name, datatype, dims }
}

const PAIR = [one('A', 'INT32', 2), one('B', 'INT32', 2)]

/** The models of `model_repository/.variants/fixtures/parity`. */
export const MODELS: readonly ModelSpec[] = [
  {
    name: 'types',
    maxBatch: 0,
    inputs: DATATYPES.map((datatype) => ({
      name: datatype === 'BYTES' ? 'STRING' : datatype,
      datatype,
      dims: [-1],
      isOptional: true,
    })),
    outputs: DATATYPES.map((datatype) => `${datatype === 'BYTES' ? 'STRING' : datatype}_OUT`),
  },
  { name: 'batch', maxBatch: 4, inputs: PAIR, outputs: ['SUM', 'DIFFERENCE'] },
  { name: 'matrix', maxBatch: 0, inputs: [one('X', 'FP32', 2, 3)], outputs: ['Y'] },
  { name: 'scalar', maxBatch: 4, inputs: [one('X', 'FP32', 1)], outputs: ['Y'] },
  { name: 'text', maxBatch: 8, inputs: [one('X', 'BYTES', 2)], outputs: ['Y'] },
  { name: 'classes', maxBatch: 4, inputs: [one('X', 'FP32', 4)], outputs: ['SCORES', 'COUNTS'] },
  { name: 'request', maxBatch: 0, inputs: [one('X', 'INT32', 1)], outputs: ['SEEN', 'Y'] },
  {
    name: 'versions',
    maxBatch: 0,
    inputs: [one('X', 'INT32', 1)],
    outputs: ['VERSION'],
    versions: ['1', '3'],
  },
  { name: 'faults', maxBatch: 0, inputs: [one('KIND', 'INT32', 1)], outputs: ['OUT', 'MORE'] },
  {
    name: 'optional',
    maxBatch: 4,
    inputs: [one('A', 'INT32', 2), { ...one('B', 'INT32', 2), isOptional: true }],
    outputs: ['SUM'],
  },
  { name: 'batcher', maxBatch: 4, inputs: [one('X', 'FP32', -1)], outputs: ['Y'] },
  { name: 'ens_chain', maxBatch: 4, inputs: PAIR, outputs: ['TOTAL', 'DIFFERENCE'] },
  { name: 'ens_nested', maxBatch: 4, inputs: PAIR, outputs: ['OUT'] },
  { name: 'ens_faults', maxBatch: 0, inputs: [one('KIND', 'INT32', 1)], outputs: ['OUT'] },
  { name: 'ens_request', maxBatch: 0, inputs: [one('X', 'INT32', 1)], outputs: ['SEEN', 'Y'] },
  {
    name: 'ens_versions',
    maxBatch: 0,
    inputs: [one('X', 'INT32', 1)],
    outputs: ['OLD', 'NEW'],
    versions: ['2'],
  },
  { name: 'ens_classes', maxBatch: 4, inputs: [one('X', 'FP32', 4)], outputs: ['SCORES'] },
]

/** Those that answer any number of times. */
export const DECOUPLED: readonly ModelSpec[] = ['repeat', 'ens_repeat'].map((name) => ({
  name,
  maxBatch: 0,
  inputs: [one('COUNT', 'INT32', 1)],
  outputs: ['VALUE'],
  isDecoupled: true,
}))

/** Names under which there is nothing to serve. */
export const NO_MODELS = ['nope', 'batch ', 'BATCH', '..', 'ens/chain', 'types%20'] as const

export const VERSIONS = [
  '1',
  '2',
  '3',
  '0',
  '-1',
  '99',
  '1x',
  'x',
  ' 1',
  '1.5',
  '01',
  '+1',
  '9223372036854775807',
  '9223372036854775808',
  '18446744073709551616',
] as const

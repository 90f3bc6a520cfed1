import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { ServeError } from '@tutti/errors'
import type { ModelConfig, SequenceState } from '@tutti/model-config'
import { isInside } from '@tutti/repository'
import {
  DATATYPES,
  elementCount,
  fromConfigDatatype,
  type NamedTensor,
  walkBytesTensor,
} from '@tutti/tensor'

type InitialState = SequenceState['initial_state'][number]

/** Folder of the files of initial states, below the model's directory. */
const FOLDER = 'initial_state'

/**
 * Reads the states of a new sequence: the values of `initial_state`, else zeros, with an extent of 1 for a variable dimension.
 *
 * @returns the states by name of their input.
 * @throws ServeError CONFIG_INVALID with Triton's text.
 */
export async function readInitialStates(
  config: ModelConfig,
  modelDirectory: string,
): Promise<ReadonlyMap<string, NamedTensor>> {
  const states = config.sequence_batching?.state ?? []
  const batch = config.max_batch_size > 0 ? [1] : []
  const tensors = await Promise.all(
    states.map((state) => {
      refuse(stateFault(state, config))
      return readInitialState(state, batch, modelDirectory)
    }),
  )
  return new Map(tensors.map((tensor) => [tensor.name, tensor]))
}

async function readInitialState(
  state: SequenceState,
  batch: readonly number[],
  modelDirectory: string,
): Promise<NamedTensor> {
  const { input_name: name, initial_state: all } = state
  const [initial] = all
  const dims = initial?.dims ?? state.dims.map((extent) => (extent === -1 ? 1 : extent))
  const datatype = fromConfigDatatype(state.data_type) ?? 'BOOL'
  // An empty text is its length, 0, in four bytes.
  const size = elementCount(dims) * (DATATYPES[datatype].itemSize ?? 4)
  const data =
    initial?.data_file === undefined
      ? new Uint8Array(size)
      : await readData(initial.data_file, modelDirectory)
  const shape = [...batch, ...dims]
  if (datatype === 'BYTES') requireTexts(data, elementCount(dims), name)
  else if (data.byteLength < size) {
    refuse(
      `initial_state setting expects ${size} bytes, but the data provided from ${initial?.data_file}only has ${data.byteLength} bytes.`,
    )
  }
  return { name, datatype, shape, data: datatype === 'BYTES' ? data : data.subarray(0, size) }
}

/** Finds what Triton refuses of a state, in its words. */
function stateFault(state: SequenceState, config: ModelConfig): string | undefined {
  const { input_name: name, initial_state: all } = state
  // On a GPU it saves Triton copies; states grow here without it.
  if (state.use_growable_memory && config.instance_group.some(({ kind }) => kind !== 'KIND_GPU')) {
    return `'use_growable_memory' can only work with KIND_GPU model instances right now. Please either change the instance type to KIND_GPU or set 'use_growable_memory' to false for state input '${name}'.`
  }
  if (all.length > 1) {
    return `initial_state field for state input '${name}' must contain exactly one or zero element. Found '${all.length}' elements.`
  }
  const [initial] = all
  return initial && initialFault(state, initial)
}

function initialFault(state: SequenceState, initial: InitialState): string | undefined {
  const { input_name: name, dims } = state
  if (initial.data_type !== state.data_type) {
    return `The data type used for 'initial_state' field of state '${name}' does not match the state data type.`
  }
  if (initial.name === '') {
    return `Field 'name' must be set when using initial_state for state input '${name}'.`
  }
  if (initial.dims.length !== dims.length) {
    return `Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input '${name}'. ${initial.dims.length} != ${dims.length}`
  }
  if (initial.dims.some((extent) => extent < 0)) {
    return `'initial_state' field for state input name '${name}' contains variable dimensions.`
  }
  const other = initial.dims.findIndex((extent, i) => dims[i] !== -1 && dims[i] !== extent)
  if (other >= 0) {
    return `'initial_state' dim for input name '${name}' doesn't match 'state' dim description. ${initial.dims[other]} != ${dims[other]}`
  }
  return initial.zero_data === undefined && initial.data_file === undefined
    ? `initial_state setting expects state'${name}' to have state_data set`
    : undefined
}

async function readData(filename: string, modelDirectory: string): Promise<Uint8Array> {
  const folder = join(modelDirectory, FOLDER)
  const path = resolve(folder, filename)
  if (!isInside(folder, path)) {
    refuse(`initial_state file '${filename}' is outside the model's ${FOLDER} directory`)
  }
  try {
    // Not a Buffer: its slice() shares memory where that of other arrays copies.
    return Uint8Array.from(await readFile(path))
  } catch (error) {
    const text = `failed to read initial_state file '${filename}': ${ServeError.from(error).message}`
    throw new ServeError('CONFIG_INVALID', text, { cause: error })
  }
}

function requireTexts(data: Uint8Array, want: number, name: string): void {
  let got = 0
  try {
    got = walkBytesTensor(data)
  } catch (error) {
    const text = `initial_state of state input '${name}': ${ServeError.from(error).message}`
    throw new ServeError('CONFIG_INVALID', text, { cause: error })
  }
  if (got === want) return
  refuse(`initial_state of state input '${name}' has ${got} strings, want ${want}`)
}

function refuse(text: string | undefined): void {
  if (text === undefined) return
  throw new ServeError('CONFIG_INVALID', text, { details: { field: 'sequence_batching.state' } })
}

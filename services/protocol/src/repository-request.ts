import { WireReader } from '@tutti/formats'
import { MAX_FIELDS, MESSAGE_BOUNDS, ParameterBudget, tooManyEntries } from './message-bounds.ts'

/** Value of an `inference.ModelRepositoryParameter`; undefined if none is set. */
export type RepositoryParameter = boolean | bigint | string | Uint8Array | undefined

/** A RepositoryModelLoadRequest or RepositoryModelUnloadRequest, which are laid out alike. */
export interface RepositoryRequestMessage {
  readonly repositoryName: string
  readonly modelName: string
  readonly parameters: ReadonlyMap<string, RepositoryParameter>
}

/**
 * Decodes a request to load or to unload a model.
 *
 * @param bytes - viewed: files of the result are views into it.
 * @throws ServeError MALFORMED_MESSAGE for bytes that are no such message, MESSAGE_TOO_LARGE for more than MESSAGE_BOUNDS.parameters
 * or MAX_FIELDS, and for keys and texts of more than 512 KiB; files are no texts.
 */
export function decodeRepositoryRequest(bytes: Uint8Array): RepositoryRequestMessage {
  const reader = new WireReader(bytes, MAX_FIELDS)
  let repositoryName = ''
  let modelName = ''
  const parameters = new Map<string, RepositoryParameter>()
  const budget = new ParameterBudget()
  while (reader.hasMore()) {
    const tag = reader.tag()
    if (tag === 10) repositoryName = reader.text()
    else if (tag === 18) modelName = reader.text()
    else if (tag === 26) readEntry(reader, parameters, budget)
    else reader.skip(tag)
    if (parameters.size > MESSAGE_BOUNDS.parameters) throw tooManyEntries('parameters')
  }
  return { repositoryName, modelName, parameters }
}

/** Reads one entry of the map; the last of equal keys wins. */
function readEntry(
  reader: WireReader,
  parameters: Map<string, RepositoryParameter>,
  budget: ParameterBudget,
): void {
  let key = ''
  let value: RepositoryParameter
  const outer = reader.enter()
  while (reader.hasMore()) {
    const tag = reader.tag()
    if (tag === 10) key = budget.key(reader)
    else if (tag === 18) value = readValue(reader, budget)
    else reader.skip(tag)
  }
  reader.leave(outer)
  parameters.set(key, value)
}

function readValue(reader: WireReader, budget: ParameterBudget): RepositoryParameter {
  let value: RepositoryParameter
  const outer = reader.enter()
  while (reader.hasMore()) {
    const tag = reader.tag()
    if (tag === 8) value = reader.int64() !== 0
    else if (tag === 16) value = BigInt(reader.int64())
    else if (tag === 26) value = budget.text(reader)
    else if (tag === 34) value = reader.view()
    else reader.skip(tag)
  }
  reader.leave(outer)
  return value
}

/** Fields of a request without tensors and below its own: most have two or three, a load one for each file. */
const MAX_SMALL_FIELDS = 2 * MESSAGE_BOUNDS.parameters

/**
 * Refuses a small message whose many fields would take long to decode.
 *
 * @throws ServeError MESSAGE_TOO_LARGE, MALFORMED_MESSAGE
 */
export function checkFieldCount(bytes: Uint8Array): void {
  const reader = new WireReader(bytes, MAX_SMALL_FIELDS)
  while (reader.hasMore()) reader.skip(reader.tag())
}

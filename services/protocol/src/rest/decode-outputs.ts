import { ServeError } from '@tutti/errors'
import { MESSAGE_BOUNDS, tooManyEntries } from '../message-bounds.ts'
import { asBoolean, asCount, member, memberAsArray, memberAsString } from './json-fields.ts'
import { decodePlace, type SharedPlace } from './shared-place.ts'

/** Requested output: one entry of `outputs`. */
export interface RestRequestedOutput {
  readonly name: string
  /** Number of classes wanted (top-k); 0 for the tensor itself. */
  readonly classification: number
  readonly isBinary: boolean
  /** Place in shared memory that the output is written to, instead of the answer. */
  readonly place?: SharedPlace
}

/**
 * Decodes the optional `outputs` member. A name that comes twice counts once, with its first form (triton-semantics 9.7).
 *
 * @param isBinaryOutput - the request-level `binary_data_output`, which an output's own `binary_data` overrides.
 */
export function decodeOutputs(
  document: unknown,
  isBinaryOutput: boolean,
): readonly RestRequestedOutput[] {
  if (member(document, 'outputs') === undefined) return []
  const items = memberAsArray(document, 'outputs')
  if (items.length > MESSAGE_BOUNDS.outputs) throw tooManyEntries('outputs')
  const outputs = new Map<string, RestRequestedOutput>()
  for (const item of items) {
    const output = decodeOutput(item, isBinaryOutput)
    if (!outputs.has(output.name)) outputs.set(output.name, output)
  }
  return [...outputs.values()]
}

function decodeOutput(item: unknown, isBinaryOutput: boolean): RestRequestedOutput {
  const name = memberAsString(item, 'name')
  const parameters = member(item, 'parameters')
  const region = member(parameters, 'shared_memory_region')
  const classification = member(parameters, 'classification')
  const binaryData = member(parameters, 'binary_data')
  const isBinary =
    binaryData === undefined ? undefined : asBoolean(binaryData, "Unable to parse 'binary_data'")
  if (region !== undefined && classification !== undefined) {
    throw new ServeError(
      'INVALID_REQUEST',
      "Output can't set both 'shared_memory_region' and 'classification'",
    )
  }
  // Triton's own client sends `false` along with a region.
  if (region !== undefined && isBinary === true) {
    throw new ServeError(
      'INVALID_REQUEST',
      "Output can't set both 'shared_memory_region' and 'binary_data'",
    )
  }
  const place = decodePlace(parameters)
  if (place !== undefined) return { name, classification: 0, isBinary: false, place }
  return {
    name,
    classification:
      classification === undefined ? 0 : asCount(classification, "Unable to set 'classification'"),
    isBinary: isBinary ?? isBinaryOutput,
  }
}

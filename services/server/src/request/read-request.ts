import type { WireParameters } from '@tutti/protocol'
import { EMPTY_CONTEXT, isDatatype, type NamedTensor } from '@tutti/tensor'
import type { RequestedOutput, ResolvedModel } from '../inference-backend.ts'
import { toClasses } from './classify.ts'
import {
  duplicateInput,
  type InputSource,
  missingData,
  typedData,
  unknownDatatype,
} from './input-refusals.ts'
import { readOutputParameters, refuseSharedMemory } from './output-parameters.ts'
import { type RequestParameters, readGivenParameters } from './request-parameters.ts'

/**
 * Reads the parameters of a request: those with a meaning of their own, and the custom ones, which travel to every step.
 *
 * @throws ServeError INVALID_PARAMETER with Triton's text.
 */
export function readRequestParameters(id: string, parameters: WireParameters): RequestParameters {
  if (parameters.size > 0) return readGivenParameters(id, parameters)
  return { context: { ...EMPTY_CONTEXT, id }, isEmptyFinalWanted: false }
}

/**
 * Reads which outputs are wanted and how. A name that comes twice counts once, as in Triton 2.51.
 *
 * @throws ServeError INVALID_PARAMETER, or NOT_FOUND for a shared memory region.
 */
export function readRequestedOutputs(
  outputs: readonly { readonly name: string; readonly parameters: WireParameters }[],
): readonly RequestedOutput[] {
  if (outputs.length === 0) return []
  const wanted = new Map<string, RequestedOutput>()
  for (const { name, parameters } of outputs) {
    const classification = parameters.size === 0 ? 0 : readOutputParameters(name, parameters)
    if (!wanted.has(name)) wanted.set(name, { name, classification })
  }
  return [...wanted.values()]
}

/**
 * Gives each input its bytes, by the rules of triton-semantics 4.7: raw entries in order, or typed contents turned into
 * raw ones. Raw data are views into the message.
 *
 * @throws ServeError with Triton's text: duplicates, data missing or given twice, contents of another datatype, shared memory.
 */
export function readInputs(source: InputSource): readonly NamedTensor[] {
  if (source.inputs.length > 1) refuseDuplicates(source)
  let entry = 0
  const tensors: NamedTensor[] = []
  let invalid: string | undefined
  for (const input of source.inputs) {
    const { name, datatype, shape, parameters, contents } = input
    if (parameters.size > 0) refuseSharedMemory(name, parameters)
    const data =
      contents === undefined ? source.rawContents[entry] : typedData(source, input, contents)
    if (data === undefined) throw missingData(source, name)
    entry += 1
    if (isDatatype(datatype)) tensors.push({ name, datatype, shape, data })
    else invalid ??= name
  }
  if (invalid !== undefined) throw unknownDatatype(source, invalid)
  return tensors
}

function refuseDuplicates(source: InputSource): void {
  const names = new Set<string>()
  for (const { name } of source.inputs) {
    if (names.has(name)) throw duplicateInput(source, name)
    names.add(name)
  }
}

/** Replaces the outputs for which classes were asked; the others stay as they are. */
export function classifyOutputs(
  outputs: readonly NamedTensor[],
  wanted: readonly RequestedOutput[],
  model: ResolvedModel,
): readonly NamedTensor[] {
  const isAsked = wanted.some(({ classification }) => classification > 0)
  return isAsked ? toClasses(outputs, wanted, model) : outputs
}

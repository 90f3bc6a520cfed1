import { ServeError } from '@tutti/errors'
import type { Parameter } from '@tutti/tensor'
import type { RequestedOutput } from '../inference-backend.ts'
import { refuseParameter } from './refuse.ts'

type WireParameters = ReadonlyMap<string, Parameter | undefined>

const REGION = 'shared_memory_region'
const CLASSIFICATION = 'classification'

/** The error for a region: client shared memory is off here, so no region is ever registered. */
function unknownRegion(tensor: string, parameter: Parameter | undefined): ServeError {
  if (parameter?.kind !== 'string') {
    return refuseParameter(
      `invalid value type for '${REGION}' parameter for tensor '${tensor}', expected string_param.`,
      REGION,
    )
  }
  return new ServeError('NOT_FOUND', `Unable to find shared memory region: '${parameter.value}'`, {
    details: { field: `parameters.${REGION}` },
  })
}

/** @throws ServeError NOT_FOUND if the tensor's bytes are said to be in shared memory. */
export function refuseSharedMemory(tensor: string, parameters: WireParameters): void {
  if (parameters.size > 0 && parameters.has(REGION)) {
    throw unknownRegion(tensor, parameters.get(REGION))
  }
}

function readClassification(parameter: Parameter | undefined): number {
  if (parameter?.kind !== 'int64') {
    throw refuseParameter(
      `invalid value type for '${CLASSIFICATION}' parameter, expected int64_param`,
      CLASSIFICATION,
    )
  }
  if (parameter.value <= 0n) {
    throw refuseParameter(
      `invalid value for '${CLASSIFICATION}' parameter, expected >= 0`,
      CLASSIFICATION,
    )
  }
  const most = BigInt(Number.MAX_SAFE_INTEGER)
  return Number(parameter.value > most ? most : parameter.value)
}

function readOutput(name: string, parameters: WireParameters): RequestedOutput {
  if (parameters.size === 0) return { name, classification: 0 }
  const isClassified = parameters.has(CLASSIFICATION)
  if (isClassified && parameters.has(REGION)) {
    throw refuseParameter(
      `output can't set both '${REGION}' and '${CLASSIFICATION}'`,
      CLASSIFICATION,
    )
  }
  refuseSharedMemory(name, parameters)
  return {
    name,
    classification: isClassified ? readClassification(parameters.get(CLASSIFICATION)) : 0,
  }
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
    const output = readOutput(name, parameters)
    if (!wanted.has(name)) wanted.set(name, output)
  }
  return [...wanted.values()]
}

import { ServeError } from '@tutti/errors'
import type { InferRequestMessage, WireParameters } from '@tutti/protocol'
import type { Parameter } from '@tutti/tensor'
import type { RequestedOutput } from '../inference-backend.ts'
import { refuseParameter } from './refuse.ts'

const REGION = 'shared_memory_region'
const OFFSET = 'shared_memory_offset'
const BYTE_SIZE = 'shared_memory_byte_size'
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

/** @throws ServeError if the request names shared memory for the tensor, or a place in one that it does not name. */
export function refuseSharedMemory(tensor: string, parameters: WireParameters): void {
  const region = parameters.get(REGION)
  if (parameters.has(REGION) && region?.kind !== 'string') throw unknownRegion(tensor, region)
  for (const key of [OFFSET, BYTE_SIZE]) {
    if (!parameters.has(key)) continue
    if (!parameters.has(REGION)) {
      const text = `'${key}' can not be specified without '${REGION}' parameter for tensor '${tensor}'`
      throw refuseParameter(text, key)
    }
    if (parameters.get(key)?.kind !== 'int64') {
      const text = `invalid value type for '${key}' parameter for tensor '${tensor}', expected int64_param.`
      throw refuseParameter(text, key)
    }
  }
  if (!parameters.has(REGION)) return
  if (!parameters.has(BYTE_SIZE)) {
    const text = `'${BYTE_SIZE}' must be specified along with '${REGION}' parameter for tensor '${tensor}'`
    throw refuseParameter(text, BYTE_SIZE)
  }
  throw unknownRegion(tensor, region)
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

/**
 * How many classes of an output are asked for, 0 for the tensor itself.
 *
 * @throws ServeError INVALID_PARAMETER, or NOT_FOUND for a shared memory region.
 */
function readOutputParameters(name: string, parameters: WireParameters): number {
  const isClassified = parameters.has(CLASSIFICATION)
  if (isClassified && parameters.has(REGION)) {
    throw refuseParameter(
      `output can't set both '${REGION}' and '${CLASSIFICATION}'`,
      CLASSIFICATION,
    )
  }
  refuseSharedMemory(name, parameters)
  return isClassified ? readClassification(parameters.get(CLASSIFICATION)) : 0
}

/** Reads which outputs are wanted and how. A name that comes twice counts once, as in Triton 2.51. @throws ServeError */
export function readRequestedOutputs(
  outputs: InferRequestMessage['outputs'],
): readonly RequestedOutput[] {
  const wanted = new Map<string, RequestedOutput>()
  for (const { name, parameters } of outputs) {
    const classification = parameters.size === 0 ? 0 : readOutputParameters(name, parameters)
    if (!wanted.has(name)) wanted.set(name, { name, classification })
  }
  return [...wanted.values()]
}

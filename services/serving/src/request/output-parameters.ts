import type { InferRequestMessage } from '@tutti/protocol'
import type { Parameter } from '@tutti/tensor'
import type { InferenceBackend, RequestedOutput } from '../backend/inference-backend.ts'
import { findOutputPlace } from './placed-outputs.ts'
import { REGION, readPlace } from './read-place.ts'
import { refuseParameter } from './refuse.ts'

const CLASSIFICATION = 'classification'

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
 * Reads how an output is wanted.
 *
 * @throws ServeError INVALID_PARAMETER, or NOT_FOUND for a shared memory region.
 */
function readOutputParameters(
  { name, parameters }: InferRequestMessage['outputs'][number],
  backend: Pick<InferenceBackend, 'regions' | 'identity'>,
): RequestedOutput {
  const isClassified = parameters.has(CLASSIFICATION)
  if (isClassified && parameters.has(REGION)) {
    throw refuseParameter(
      `output can't set both '${REGION}' and '${CLASSIFICATION}'`,
      CLASSIFICATION,
    )
  }
  const place = readPlace(name, parameters)
  if (place !== undefined) {
    return { name, classification: 0, place: findOutputPlace(backend, place) }
  }
  const classification = isClassified ? readClassification(parameters.get(CLASSIFICATION)) : 0
  return { name, classification }
}

/** Reads which outputs are wanted and how. A name that comes twice counts once, as in Triton 2.51. @throws ServeError */
export function readRequestedOutputs(
  outputs: InferRequestMessage['outputs'],
  backend: Pick<InferenceBackend, 'regions' | 'identity'>,
): readonly RequestedOutput[] {
  const wanted = new Map<string, RequestedOutput>()
  for (const output of outputs) {
    const { name, parameters } = output
    const read =
      parameters.size === 0 ? { name, classification: 0 } : readOutputParameters(output, backend)
    if (!wanted.has(name)) wanted.set(name, read)
  }
  return [...wanted.values()]
}

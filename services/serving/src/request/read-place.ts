import { ServeError } from '@tutti/errors'
import type { SharedPlace, WireParameters } from '@tutti/protocol'
import { type Region, unknownRegion } from '@tutti/shared-memory'
import type { InferenceBackend } from '../backend/inference-backend.ts'
import { refuseParameter } from './refuse.ts'

export const REGION = 'shared_memory_region'
const OFFSET = 'shared_memory_offset'
const BYTE_SIZE = 'shared_memory_byte_size'

/**
 * Reads which place in shared memory the parameters of a tensor name; undefined if they name none.
 *
 * @throws ServeError INVALID_PARAMETER for a region without a size, or a place in none.
 */
export function readPlace(tensor: string, parameters: WireParameters): SharedPlace | undefined {
  const region = parameters.get(REGION)
  if (parameters.has(REGION) && region?.kind !== 'string') throw wrongType(tensor, REGION, 'string')
  const offset = readCount(tensor, parameters, OFFSET)
  const byteSize = readCount(tensor, parameters, BYTE_SIZE)
  if (region?.kind !== 'string') return undefined
  if (byteSize === undefined) {
    const text = `'${BYTE_SIZE}' must be specified along with '${REGION}' parameter for tensor '${tensor}'`
    throw refuseParameter(text, BYTE_SIZE)
  }
  return { region: region.value, offset: offset ?? 0, byteSize }
}

/** Reads a count. Triton reads a negative number as one beyond the size of any region. */
function readCount(tensor: string, parameters: WireParameters, key: string): number | undefined {
  if (!parameters.has(key)) return undefined
  if (!parameters.has(REGION)) {
    const text = `'${key}' can not be specified without '${REGION}' parameter for tensor '${tensor}'`
    throw refuseParameter(text, key)
  }
  const parameter = parameters.get(key)
  if (parameter?.kind !== 'int64') throw wrongType(tensor, key, 'int64')
  return Number(BigInt.asUintN(64, parameter.value))
}

function wrongType(tensor: string, key: string, want: string): ServeError {
  const text = `invalid value type for '${key}' parameter for tensor '${tensor}', expected ${want}_param.`
  return refuseParameter(text, key)
}

/** Finds the region that a request names. @throws ServeError NOT_FOUND, also where shared memory is off; ACCESS_DENIED. */
export function findRegion(
  { regions, identity }: Pick<InferenceBackend, 'regions' | 'identity'>,
  name: string,
): Region {
  if (regions === undefined) throw unknownRegion(name)
  if (identity?.mayControl === false) {
    const text = `identity '${identity.name}' may not use shared memory`
    throw new ServeError('ACCESS_DENIED', text)
  }
  return regions.find(name)
}

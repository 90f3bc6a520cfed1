import { asCount, asString, member } from './json-fields.ts'

/** A place in a region of shared memory that a client has registered. */
export interface SharedPlace {
  readonly region: string
  /** Offset from the begin of the region, in bytes. */
  readonly offset: number
  readonly byteSize: number
}

/**
 * Reads the place in shared memory from the parameters of a tensor; undefined if they name no region. A size that is absent is 0,
 * as in Triton.
 *
 * @throws ServeError with code INTERNAL for an offset or a size that is no count, even without a region.
 */
export function decodePlace(parameters: unknown): SharedPlace | undefined {
  const name = member(parameters, 'shared_memory_region')
  const region =
    name === undefined ? undefined : asString(name, "Unable to parse 'shared_memory_region'")
  const sizeOf = (key: string): number => {
    const value = member(parameters, key)
    return value === undefined ? 0 : asCount(value, `Unable to parse '${key}'`)
  }
  const offset = sizeOf('shared_memory_offset')
  const byteSize = sizeOf('shared_memory_byte_size')
  return region === undefined ? undefined : { region, offset, byteSize }
}

import { asCount, asString, member } from './json-fields.ts'

/** A place in a region of shared memory that a client has registered. */
export interface SharedPlace {
  readonly region: string
  /** From the begin of the region, in bytes. */
  readonly offset: number
  readonly byteSize: number
}

/**
 * Reads what the parameters of a tensor say of shared memory; undefined if they name no region. Without a size it is 0, as in Triton.
 *
 * @throws ServeError INTERNAL for an offset or a size that is no count, even without a region.
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

import { asCount, asString, member } from './json-fields.ts'

/** A place in a region of shared memory that a client has registered. */
export interface SharedPlace {
  readonly region: string
  /** From the begin of the region, in bytes. */
  readonly offset: number
  readonly byteSize: number
}

/** What the parameters of a tensor say of shared memory; undefined if they name no region. Without a size it is 0, as in Triton. */
export function decodePlace(parameters: unknown): SharedPlace | undefined {
  const region = member(parameters, 'shared_memory_region')
  if (region === undefined) return undefined
  const sizeOf = (name: string): number => {
    const value = member(parameters, name)
    return value === undefined ? 0 : asCount(value, `Unable to parse '${name}'`)
  }
  return {
    region: asString(region, "Unable to parse 'shared_memory_region'"),
    offset: sizeOf('shared_memory_offset'),
    byteSize: sizeOf('shared_memory_byte_size'),
  }
}

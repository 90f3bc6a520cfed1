/** The integer types of model_config.proto. */
export type IntegerType = 'int32' | 'int64' | 'uint32' | 'uint64'

const SAFE = BigInt(Number.MAX_SAFE_INTEGER)

/**
 * The least and greatest value of each integer type. 64-bit types end at +-(2^53 - 1), because a ModelConfig holds their values
 * as numbers.
 */
export const INTEGER_RANGES: Readonly<Record<IntegerType, readonly [bigint, bigint]>> = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  int64: [-SAFE, SAFE],
  uint32: [0n, 2n ** 32n - 1n],
  uint64: [0n, SAFE],
}

/** Tells whether a scalar type is an integer type. */
export function isIntegerType(type: string): type is IntegerType {
  return Object.hasOwn(INTEGER_RANGES, type)
}

/** Names the range of a type for messages: `int32 from -2147483648 to 2147483647`. */
export function describeRange(type: IntegerType): string {
  const [least, greatest] = INTEGER_RANGES[type]
  return `${type} from ${least} to ${greatest}`
}

/** Converts an integer to a number; returns undefined if it is outside the type's range. */
export function toIntegerInRange(value: bigint, type: IntegerType): number | undefined {
  const [least, greatest] = INTEGER_RANGES[type]
  return value < least || value > greatest ? undefined : Number(value)
}

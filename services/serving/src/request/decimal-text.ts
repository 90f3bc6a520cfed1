const DIGITS = 6
const EXPONENT_FROM = 1e21

/**
 * Prints a number as C's `%f`, which is C++'s `std::to_string`: six decimals, exact ties to the even digit.
 * JavaScript's toFixed rounds ties away from zero: 1/128 is 0.0078125, here 0.007812 and there 0.007813.
 */
export function toDecimalText(value: number): string {
  if (Number.isNaN(value)) return 'nan'
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf'
  const sign = value < 0 || Object.is(value, -0) ? '-' : ''
  const size = Math.abs(value)
  if (size >= EXPONENT_FROM) return `${sign}${BigInt(size)}.000000`
  const rounded = size.toFixed(DIGITS)
  // A tie ends in 5 at the seventh decimal, so it is an odd multiple of 2^-7: the one power of two with seven decimals.
  const isTie = (size * 128) % 2 === 1
  if (!isTie) return sign + rounded
  const cut = size.toFixed(DIGITS + 1).slice(0, -1)
  const isEven = Number(cut.at(-1)) % 2 === 0
  return sign + (isEven ? cut : rounded)
}

type Quantity = string | number

/** Units of quantities: the powers of 1024, then those of 1000, largest first. A quantity has no more than nine digits after the point. */
const BINARY = ['Ei', 'Pi', 'Ti', 'Gi', 'Mi', 'Ki'].map(
  (unit, i) => [unit, 1024n ** BigInt(6 - i)] as const,
)
const DECIMAL = ['E', 'P', 'T', 'G', 'M', 'k', '', 'm', 'u', 'n'].map(
  (unit, i) => [unit, 10n ** BigInt(27 - 3 * i)] as const,
)
const DIGITS = 9
const ONE = 10n ** BigInt(DIGITS)
const FORM = /^([0-9]+)(?:\.([0-9]+))?([a-zA-Z]*)(?:(?<=[eE])([+-]?[0-9]+))?$/

/**
 * Adds quantities of Kubernetes exactly, and writes the sum as the API server writes it: a whole number of the largest unit that gives
 * one. Digits beyond the ninth after the point are rounded up.
 *
 * @param quantities - values that passed the schema; at least one.
 */
export function addQuantities(quantities: readonly Quantity[]): string {
  const parsed = quantities.map(toNano)
  const sum = parsed.reduce((total, { nano }) => total + nano, 0n)
  const isBinary = parsed.every((one) => one.isBinary) && sum % ONE === 0n
  const units = isBinary ? BINARY.map(([unit, factor]) => [unit, factor * ONE] as const) : DECIMAL
  const [unit, factor] = units.find(([, one]) => sum !== 0n && sum % one === 0n) ?? ['', ONE]
  return `${sum / factor}${unit}`
}

function toNano(quantity: Quantity): { readonly nano: bigint; readonly isBinary: boolean } {
  const [, whole = '0', fraction = '', suffix = '', exponent] = FORM.exec(String(quantity)) ?? []
  const power = Number(exponent ?? 0)
  // The E of 2E3 is no unit.
  const unit = exponent === undefined ? factorOf(suffix) : ONE
  const factor = unit * 10n ** BigInt(Math.max(0, power))
  const divisor = 10n ** BigInt(fraction.length + Math.max(0, -power))
  const product = BigInt(`${whole}${fraction}`) * factor
  return { nano: (product + divisor - 1n) / divisor, isBinary: suffix.endsWith('i') }
}

function factorOf(suffix: string): bigint {
  const binary = BINARY.find(([unit]) => unit === suffix)
  if (binary !== undefined) return binary[1] * ONE
  const unit = suffix === 'K' ? 'k' : suffix
  return DECIMAL.find(([one]) => one === unit)?.[1] ?? ONE
}

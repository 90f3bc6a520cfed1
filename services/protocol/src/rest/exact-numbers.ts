/** Most digits of an integer to compute. A longer integer fits no 64-bit datatype, and to compute it could take long. */
const MAX_DIGITS = 20
const OUT_OF_RANGE = 10n ** BigInt(MAX_DIGITS)

/** Number with its text in the JSON: `3` and `3.0` are different parameters, and 2^53 + 1 is not 2^53. */
export class WrittenNumber {
  readonly source: string

  constructor(source: string) {
    // As NaN is written in the text of a document, see json-names.ts.
    this.source = source === 'null' ? 'NaN' : source
  }

  /**
   * Value of a number that was written as an integer, without fraction and exponent; undefined for others. More than 20 digits
   * give 10^20.
   */
  get integer(): bigint | undefined {
    return toInteger(this.source)
  }

  get double(): number {
    return Number(this.source)
  }
}

function toInteger(written: string): bigint | undefined {
  if (!/^-?\d+$/.test(written)) return undefined
  return written.length > MAX_DIGITS + 1 ? OUT_OF_RANGE : BigInt(written)
}

/**
 * Reads the numbers of an array, flat and in order. The array holds only numbers and arrays of numbers. This is a scan of its own
 * because a reviver with source access takes 1.5 microseconds an element: 64 MiB would hold the process for 14 s.
 *
 * @param text - JSON that has been parsed and found to hold only numbers.
 * @returns integers beyond 2^53 as bigint, those of more than 20 digits as 10^20, everything else as number.
 */
export function readNumbers(text: string): readonly (number | bigint)[] {
  const numbers: (number | bigint)[] = []
  const token = /[-\d][^,\]\s]*/g
  for (let found = token.exec(text); found !== null; found = token.exec(text)) {
    const [written] = found
    const value = Number(written)
    numbers.push(Number.isSafeInteger(value) ? value : (toInteger(written) ?? value))
  }
  return numbers
}

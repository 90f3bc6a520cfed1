const MARK = ' ... (cut)'

/** Counts the bytes of a text in UTF-8. */
export function utf8Length(text: string): number {
  return Buffer.byteLength(text)
}

/** Counts the bytes of a well-formed text after percent-encoding, as in the header `grpc-message`. */
export function percentEncodedLength(text: string): number {
  return encodeURI(text).length
}

/**
 * Cuts a text to at most `maxBytes`, as `sizeOf` counts them. A cut text ends with a mark. Lone surrogates, at which encodeURI
 * throws, become U+FFFD.
 */
export function capText(text: string, maxBytes: number, sizeOf: (text: string) => number): string {
  // A character is at least one byte, so what is longer than the bound need not be measured whole.
  const start = text.slice(0, maxBytes + 1).toWellFormed()
  if (start.length <= maxBytes && sizeOf(start) <= maxBytes) return start
  const budget = maxBytes - sizeOf(MARK)
  let low = 0
  let high = start.length
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (sizeOf(start.slice(0, middle).toWellFormed()) <= budget) low = middle
    else high = middle - 1
  }
  return start.slice(0, low).toWellFormed() + MARK
}

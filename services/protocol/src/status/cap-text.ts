const MARK = ' ... (cut)'

/** Bytes of a text in UTF-8. */
export function utf8Length(text: string): number {
  return Buffer.byteLength(text)
}

/** Bytes of a well-formed text once it is percent-encoded, as in the header `grpc-message`. */
export function percentEncodedLength(text: string): number {
  return encodeURI(text).length
}

/**
 * Returns the text if `sizeOf` it is at most `maxBytes`; otherwise the longest beginning that fits with a mark at its end.
 * Lone surrogates, which encodeURI throws at, become U+FFFD.
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

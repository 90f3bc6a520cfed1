import { ServeError } from '@tutti/errors'

/** Objects and arrays within one another: more than data of ours has, few enough for every reader that recurses. */
const MAX_DEPTH = 128
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const OPEN_BRACE = 0x7b
const CLOSE_BRACKET = 0x5d
const CLOSE_BRACE = 0x7d
/** Change of the depth, by the byte. */
const NESTING = new Int8Array(256)
for (const open of [OPEN_BRACKET, OPEN_BRACE]) NESTING[open] = 1
for (const close of [CLOSE_BRACKET, CLOSE_BRACE]) NESTING[close] = -1

/** Counts of what a JSON text contains, taken from its punctuation. The text may still be invalid JSON. */
export interface JsonSize {
  /** Objects and arrays. */
  readonly containers: number
  readonly commas: number
  /** Members of objects, those with the same name too. */
  readonly members: number
  /** Objects and arrays that are open where the count ends. Above the bound if the text nests deeper than that. */
  readonly depth: number
}

/** How often each byte stands outside of strings, in the text that is measured: 2 KiB for each request would cost as much as the rest of its reading. */
const COUNTS = new Float64Array(256)

/**
 * Counts the values that JSON.parse would create from a text, in some nanoseconds a byte and without allocating memory.
 *
 * @param maxDepth - the count ends as soon as objects and arrays nest deeper.
 */
export function measureJson(bytes: Uint8Array, maxDepth: number = MAX_DEPTH): JsonSize {
  const counts = COUNTS.fill(0)
  let depth = 0
  let isString = false
  for (let i = 0; i < bytes.byteLength && depth <= maxDepth; i++) {
    const byte = bytes[i] ?? 0
    if (byte === QUOTE) isString = !isString
    else if (isString) i += byte === BACKSLASH ? 1 : 0
    else {
      counts[byte] = (counts[byte] ?? 0) + 1
      depth += NESTING[byte] ?? 0
    }
  }
  const count = (byte: number): number => counts[byte] ?? 0
  return {
    containers: count(OPEN_BRACKET) + count(OPEN_BRACE),
    commas: count(COMMA),
    members: count(COLON),
    depth,
  }
}

/**
 * Parses JSON from a process that may be hostile. A bound on the bytes is not enough: a text of 2 bytes (`0,`) or 3 (`{},`)
 * becomes up to 100 bytes of heap, and every value takes time in the checks that follow.
 *
 * @param maxValues - most objects, arrays and their members, without the first member of each.
 * @throws ServeError MESSAGE_TOO_LARGE or MALFORMED_MESSAGE. Its text says what came, for a sentence of the caller's, and quotes
 * nothing.
 */
export function parseBoundedJson(bytes: Uint8Array, maxValues: number): unknown {
  const { containers, commas, depth } = measureJson(bytes)
  if (depth > MAX_DEPTH) {
    throw new ServeError(
      'MALFORMED_MESSAGE',
      `JSON that nests more than ${MAX_DEPTH} objects and arrays`,
    )
  }
  if (containers + commas > maxValues) {
    throw new ServeError('MESSAGE_TOO_LARGE', `JSON of more than ${maxValues} values`)
  }
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString())
  } catch (cause) {
    throw new ServeError('MALFORMED_MESSAGE', 'no JSON', { cause })
  }
}

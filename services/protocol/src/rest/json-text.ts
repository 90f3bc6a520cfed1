import { isUtf8 } from 'node:buffer'
import { ServeError } from '@tutti/errors'
import { measureJson } from '@tutti/tensor'

/**
 * Objects and arrays that one document may hold. JSON text of 3 bytes (`{},`) becomes 60 to 100 bytes of heap, so the
 * bound on the body alone would let one request fill the process; 4 Mi containers are about 300 MiB at the worst.
 */
const MAX_CONTAINERS = 2 ** 22
/** Objects and arrays within one another: more than `data` may nest, few enough for every reader that recurses. */
const MAX_DEPTH = 128

/** A parsed document and its text, which the exact readers of large integers go back to. */
export interface JsonDocument {
  readonly text: string
  readonly value: unknown
}

/**
 * Parses a request's JSON.
 *
 * @throws ServeError MALFORMED_MESSAGE with code INTERNAL, because Triton answers parse errors with 500
 * (triton-semantics 9.15); MESSAGE_TOO_LARGE if it holds too many objects and arrays or exceeds the longest string.
 */
export function parseJson(bytes: Uint8Array): JsonDocument {
  refuseContainerFlood(bytes)
  if (!isUtf8(bytes)) throw jsonSyntaxError('Invalid encoding in string.')
  const text = textOf(bytes)
  if (/^[ \t\r\n]*$/.test(text)) throw jsonSyntaxError('The document is empty. at 0')
  try {
    return { text, value: JSON.parse(text) }
  } catch (error) {
    throw syntaxErrorOf(text, error)
  }
}

/** Triton's text for a document that does not parse; the sentence is the parser's, with the offset where known. */
function jsonSyntaxError(sentence: string, cause?: unknown): ServeError {
  return new ServeError(
    'MALFORMED_MESSAGE',
    `failed to parse the request JSON buffer: ${sentence}`,
    { code: 'INTERNAL', cause },
  )
}

function textOf(bytes: Uint8Array): string {
  try {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
  } catch (cause) {
    throw new ServeError(
      'MESSAGE_TOO_LARGE',
      `a JSON document of ${bytes.byteLength} bytes is longer than this server can parse; send tensors as binary data`,
      { cause },
    )
  }
}

/** V8 names the offset only sometimes (`... at position 12 (line 1 ...)`); else its own words must do. */
function syntaxErrorOf(text: string, error: unknown): ServeError {
  const message = error instanceof Error ? error.message : String(error)
  const start = text.search(/[^ \t\r\n]/)
  const isFirst = !/[-{["0-9tfn]/.test(text[start] ?? '')
  const offset = isFirst ? String(start) : / at position (\d+)/.exec(message)?.[1]
  return jsonSyntaxError(`Invalid value. ${offset === undefined ? message : `at ${offset}`}`, error)
}

function refuseContainerFlood(bytes: Uint8Array): void {
  const { containers, depth } = measureJson(bytes, MAX_DEPTH)
  if (depth > MAX_DEPTH) throw nestedTooDeeply()
  if (containers <= MAX_CONTAINERS) return
  throw new ServeError(
    'MESSAGE_TOO_LARGE',
    `a JSON document holds ${containers} objects and arrays, want at most ${MAX_CONTAINERS}; send tensors as flat arrays or binary data`,
  )
}

function nestedTooDeeply(): ServeError {
  const text = `a JSON document is nested too deeply: more than ${MAX_DEPTH} objects and arrays within one another`
  return new ServeError('MALFORMED_MESSAGE', text, { code: 'INTERNAL' })
}

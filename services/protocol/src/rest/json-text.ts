import { isUtf8 } from 'node:buffer'
import { ServeError } from '@tutti/errors'
import { measureJson } from '@tutti/formats'
import { MESSAGE_BOUNDS, tooManyEntries } from '../message-bounds.ts'
import { nullsToNaN, replaceNames } from './json-names.ts'
import { elementTexts, memberTexts } from './json-slice.ts'

/**
 * Objects and arrays that one document may hold. JSON text of 3 bytes (`{},`) becomes 60 to 100 bytes of heap, so the
 * bound on the body alone would let one request fill the process; 4 Mi containers are about 300 MiB at the worst.
 */
const MAX_CONTAINERS = 2 ** 22
/** Objects and arrays within one another: more than `data` may nest, few enough for every reader that recurses. */
const MAX_DEPTH = 128
/** Members of a document in which a member comes twice: they are read one by one. */
const MAX_MEMBERS_WITH_TWINS = 2 ** 18
/**
 * Objects and arrays within one another that a request gives a meaning to: the document, its inputs, an input, its parameters.
 */
const READ_DEPTH = 4

/** Parsed document and its text, from which large integers are read exactly. */
export interface JsonDocument {
  readonly text: string
  readonly value: unknown
  /** True if the client wrote NaN or infinities. They are null and 1e999 in `text`. */
  readonly hasNames: boolean
}

/** Parses a part of a document's text, with NaN and infinities where the document has them. */
export function parsePart({ hasNames }: Pick<JsonDocument, 'hasNames'>, text: string): unknown {
  const value: unknown = JSON.parse(text)
  return hasNames ? nullsToNaN(value) : value
}

/**
 * Parses a request's JSON as Triton does: with NaN and infinities, and with the first one of members that have the same name.
 *
 * @throws ServeError MALFORMED_MESSAGE with code INTERNAL, because Triton answers parse errors with 500
 * (triton-semantics 9.15); MESSAGE_TOO_LARGE if it holds too many objects and arrays or exceeds the longest string.
 */
export function parseJson(body: Uint8Array): JsonDocument {
  const bytes = withoutMark(body)
  const members = refuseContainerFlood(bytes)
  if (!isUtf8(bytes)) throw jsonSyntaxError('Invalid encoding in string.')
  const text = textOf(bytes)
  if (/^[ \t\r\n]*$/.test(text)) throw jsonSyntaxError('The document is empty. at 0')
  const document = parseText(text, bytes)
  if (membersIn(document.value) === members) return document
  return { ...document, value: withoutTwins(document, members) }
}

/** Returns a view of the document without its byte order mark. */
function withoutMark(bytes: Uint8Array): Uint8Array {
  const isMarked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
  return isMarked ? bytes.subarray(3) : bytes
}

function parseText(text: string, bytes: Uint8Array): JsonDocument {
  // Replaced before it is parsed, so that it is parsed once.
  const replaced = replaceNames(bytes)
  const document =
    replaced === undefined ? { text, hasNames: false } : { text: textOf(replaced), hasNames: true }
  try {
    return { ...document, value: parsePart(document, document.text) }
  } catch (error) {
    throw syntaxErrorOf(document.text, error)
  }
}

/**
 * Counts the members of all objects in a value, but for those that stand behind something else in an array: tensors have no
 * objects.
 */
function membersIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value) && typeof value[0] !== 'object') return 0
  const items: readonly unknown[] = Array.isArray(value) ? value : Object.values(value)
  let members = Array.isArray(value) ? 0 : items.length
  for (const item of items) members += membersIn(item)
  return members
}

function withoutTwins(document: JsonDocument, members: number): unknown {
  if (members > MAX_MEMBERS_WITH_TWINS) {
    throw new ServeError(
      'MESSAGE_TOO_LARGE',
      `a JSON document with members of the same name holds ${members} members, want at most ${MAX_MEMBERS_WITH_TWINS}`,
    )
  }
  return firstOfTwins(document, document.text.trim(), READ_DEPTH)
}

function firstOfTwins(document: JsonDocument, text: string, depth: number): unknown {
  if (depth === 0 || !text.includes('{')) return parsePart(document, text)
  if (text.startsWith('[')) {
    return elementTexts(text)?.map((item) => firstOfTwins(document, item, depth - 1))
  }
  if (!text.startsWith('{')) return parsePart(document, text)
  const members = new Map<string, unknown>()
  let count = 0
  for (const [name, part] of memberTexts(text)) {
    count += 1
    if (count > MESSAGE_BOUNDS.parameters) throw tooManyEntries('parameters')
    if (!members.has(name)) members.set(name, firstOfTwins(document, part, depth - 1))
  }
  return Object.fromEntries(members)
}

/**
 * Makes the error with Triton's text for a document that does not parse; the sentence is the parser's, with the offset where
 * known.
 */
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

/**
 * Makes the error of a text that V8 refused. V8 names the offset only sometimes (`... at position 12 (line 1 ...)`); else its own
 * words must do.
 */
function syntaxErrorOf(text: string, error: unknown): ServeError {
  const message = error instanceof Error ? error.message : String(error)
  const start = text.search(/[^ \t\r\n]/)
  const isFirst = !/[-{["0-9tfn]/.test(text[start] ?? '')
  const offset = isFirst ? String(start) : / at position (\d+)/.exec(message)?.[1]
  return jsonSyntaxError(`Invalid value. ${offset === undefined ? message : `at ${offset}`}`, error)
}

/** @returns how many members its objects have. */
function refuseContainerFlood(bytes: Uint8Array): number {
  const { containers, members, depth } = measureJson(bytes, MAX_DEPTH)
  if (depth > MAX_DEPTH) throw nestedTooDeeply()
  if (containers <= MAX_CONTAINERS) return members
  throw new ServeError(
    'MESSAGE_TOO_LARGE',
    `a JSON document holds ${containers} objects and arrays, want at most ${MAX_CONTAINERS}; send tensors as flat arrays or binary data`,
  )
}

function nestedTooDeeply(): ServeError {
  const text = `a JSON document is nested too deeply: more than ${MAX_DEPTH} objects and arrays within one another`
  return new ServeError('MALFORMED_MESSAGE', text, { code: 'INTERNAL' })
}

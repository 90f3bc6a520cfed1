const SIMPLE_ESCAPES: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  f: 12,
  n: 10,
  r: 13,
  t: 9,
  v: 11,
  '\\': 92,
  '?': 63,
  "'": 39,
  '"': 34,
}

const OCTAL = /[0-7]{1,3}/y
const HEX = /[xX]([0-9a-fA-F]{1,2})/y
const SHORT_UNICODE = /u([0-9a-fA-F]{4})/y
const LONG_UNICODE = /U([0-9a-fA-F]{8})/y
const LOW_SURROGATE = /\\u([dD][c-fC-F][0-9a-fA-F]{2})/y

const encoder = new TextEncoder()

/** A string literal of the text format: its bytes, and where it ends. */
export interface StringLiteral {
  readonly bytes: readonly number[]
  /** Offset after the closing quote. */
  readonly end: number
}

/** What is wrong with a literal, and where. */
export interface StringFault {
  readonly offset: number
  readonly got: string
  readonly want: string
}

function matchAt(pattern: RegExp, text: string, offset: number): RegExpExecArray | null {
  pattern.lastIndex = offset
  return pattern.exec(text)
}

/** A `\u` escape, joined with the low surrogate that follows a high one. */
function readShortUnicode(text: string, offset: number): { code: number; end: number } | undefined {
  const match = matchAt(SHORT_UNICODE, text, offset)
  if (match?.[1] === undefined) return undefined
  const code = Number.parseInt(match[1], 16)
  const end = offset + match[0].length
  if (code < 0xd800 || code > 0xdbff) return { code, end }
  const low = matchAt(LOW_SURROGATE, text, end)
  if (low?.[1] === undefined) return { code, end }
  const joined = 0x10000 + (code - 0xd800) * 0x400 + (Number.parseInt(low[1], 16) - 0xdc00)
  return { code: joined, end: end + low[0].length }
}

function readUnicode(text: string, offset: number): { code: number; end: number } | undefined {
  const short = readShortUnicode(text, offset)
  if (short !== undefined) return short
  const match = matchAt(LONG_UNICODE, text, offset)
  if (match?.[1] === undefined) return undefined
  return { code: Number.parseInt(match[1], 16), end: offset + match[0].length }
}

/** Reads the escape whose backslash is at `offset - 1`. */
function readEscape(text: string, offset: number): StringLiteral | StringFault {
  const fault = (want: string) => ({
    offset: offset - 1,
    got: `escape "\\${text.slice(offset, offset + 1)}"`,
    want,
  })
  const simple = SIMPLE_ESCAPES[text.charAt(offset)]
  if (simple !== undefined) return { bytes: [simple], end: offset + 1 }
  const octal = matchAt(OCTAL, text, offset)
  if (octal !== null) {
    const byte = Number.parseInt(octal[0], 8)
    if (byte > 255) return fault('an octal escape up to \\377')
    return { bytes: [byte], end: offset + octal[0].length }
  }
  const hex = matchAt(HEX, text, offset)
  if (hex?.[1] !== undefined) {
    return { bytes: [Number.parseInt(hex[1], 16)], end: offset + hex[0].length }
  }
  const unicode = readUnicode(text, offset)
  if (unicode === undefined) return fault('an escape of the text format')
  if (unicode.code > 0x10ffff || (unicode.code >= 0xd800 && unicode.code <= 0xdfff)) {
    return fault('an escape that names a Unicode character')
  }
  return { bytes: [...encoder.encode(String.fromCodePoint(unicode.code))], end: unicode.end }
}

/** Reads the string literal whose opening quote is at `start`. It may span lines, as in protobuf's own parser. */
export function readStringLiteral(text: string, start: number): StringLiteral | StringFault {
  const quote = text.charAt(start)
  const bytes: number[] = []
  let offset = start + 1
  while (offset < text.length) {
    const character = text.charAt(offset)
    if (character === quote) return { bytes, end: offset + 1 }
    if (character === '\\') {
      const escape = readEscape(text, offset + 1)
      if ('got' in escape) return escape
      bytes.push(...escape.bytes)
      offset = escape.end
      continue
    }
    const point = text.codePointAt(offset) ?? 0
    if (point === 0) return { offset, got: 'a NUL character', want: 'the escape "\\0"' }
    if (point >= 0xd800 && point <= 0xdfff) {
      return { offset, got: 'half a surrogate pair', want: 'a Unicode character' }
    }
    if (point < 0x80) bytes.push(point)
    else bytes.push(...encoder.encode(String.fromCodePoint(point)))
    offset += point > 0xffff ? 2 : 1
  }
  return { offset: start, got: 'a string without end', want: `a closing ${quote}` }
}

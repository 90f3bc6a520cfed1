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

const ESCAPE =
  /([abfnrtv\\?'"])|([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})/y

const encoder = new TextEncoder()

/** The bytes of a string literal or of an escape, and its end. */
export interface StringLiteral {
  readonly bytes: readonly number[]
  /** Offset after the last character. */
  readonly end: number
}

/** A fault in a string literal, and its offset in the text. */
export interface StringFault {
  readonly offset: number
  readonly got: string
  readonly want: string
}

/** Reads the escape whose backslash is at `offset - 1`. */
function readEscape(text: string, offset: number): StringLiteral | StringFault {
  const fault = (want: string) => ({
    offset: offset - 1,
    got: `escape "\\${text.slice(offset, offset + 1)}"`,
    want,
  })
  ESCAPE.lastIndex = offset
  const match = ESCAPE.exec(text)
  if (match === null) return fault('an escape of the text format')
  const [whole, simple = '', octal, hex, pair, ...unicode] = match
  const end = offset + whole.length
  // As in C++, the low bits of \777.
  const byte = octal === undefined ? SIMPLE_ESCAPES[simple] : Number.parseInt(octal, 8) & 0xff
  if (byte !== undefined) return { bytes: [byte], end }
  if (hex !== undefined) return { bytes: [Number.parseInt(hex, 16)], end }
  if (pair !== undefined) {
    const halves = pair.split('\\u').map((half) => Number.parseInt(half, 16))
    return { bytes: [...encoder.encode(String.fromCharCode(...halves))], end }
  }
  const code = Number.parseInt(unicode.join(''), 16)
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
    return fault('an escape that names a Unicode character')
  }
  return { bytes: [...encoder.encode(String.fromCodePoint(code))], end }
}

/**
 * Reads the string literal whose opening quote is at `start`. A literal must end in its line, as in protobuf's C++ parser.
 *
 * @returns the literal, or its first fault.
 */
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
    if (character === '\n') {
      return {
        offset: start,
        got: 'a string that passes the end of its line',
        want: `a closing ${quote}, or the escape "\\n"`,
      }
    }
    const point = text.codePointAt(offset) ?? 0
    if (isStray(point)) return { offset, got: STRAY_BYTES, want: 'a string of valid UTF-8' }
    if (point === 0) return { offset, got: 'a NUL character', want: 'the escape "\\0"' }
    if (point < 0x80) bytes.push(point)
    else bytes.push(...encoder.encode(String.fromCodePoint(point)))
    offset += point > 0xffff ? 2 : 1
  }
  return { offset: start, got: 'a string without end', want: `a closing ${quote}` }
}

/** The words in messages for a lone surrogate, which stands for bytes that are not UTF-8. */
export const STRAY_BYTES = 'bytes that are no UTF-8'

/** Tells whether a character is a lone surrogate that stands for bytes that are not UTF-8. */
export function isStray(point: number): boolean {
  return point >= 0xdc80 && point <= 0xdcff
}

import { ServeError } from '@tutti/errors'
import { isStray, readStringLiteral, STRAY_BYTES } from './text-string.ts'

/** One token of the text format. */
export type Token =
  | { readonly kind: 'identifier' | 'symbol'; readonly text: string; readonly offset: number }
  /** A number; `text` lacks the suffix f of a float. */
  | { readonly kind: 'float' | 'integer'; readonly text: string; readonly offset: number }
  | {
      readonly kind: 'string'
      readonly text: string
      readonly offset: number
      readonly bytes: readonly number[]
    }
  | { readonly kind: 'end'; readonly text: ''; readonly offset: number }

// oxlint-disable-next-line no-control-regex -- NUL is no part of a comment
const BLANKS = /[ \t\r\n\v\f]+|#[^\n\0]*/y
const IDENTIFIER = /[A-Za-z_][A-Za-z0-9_]*/y
const HEX = /0[xX][0-9a-fA-F]*/y
const NUMBER = /(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?/y
const SYMBOLS = '{}<>[]:,;-/.'

/** Splits protobuf text format into tokens. Each fault of the text throws a ServeError CONFIG_SYNTAX with line and column. */
export class TextLexer {
  readonly #text: string
  readonly #path: string
  #offset: number
  #token: Token

  constructor(text: string, path: string) {
    this.#text = text
    this.#path = path
    this.#offset = 0
    this.#token = this.#read()
  }

  /** The token that comes next. */
  get token(): Token {
    return this.#token
  }

  /** Returns the next token and moves past it, except at the end of the text. */
  take(): Token {
    const token = this.#token
    if (token.kind !== 'end') this.#token = this.#read()
    return token
  }

  /** Tells whether the next token is this symbol. */
  sees(symbol: string): boolean {
    return this.#token.kind === 'symbol' && this.#token.text === symbol
  }

  /** Takes the next token if it is this symbol, and tells whether it was. */
  takeIf(symbol: string): boolean {
    if (!this.sees(symbol)) return false
    this.take()
    return true
  }

  /**
   * Takes the next token, which must be this symbol.
   *
   * @param purpose - the place of the symbol, for the text of the error.
   * @throws ServeError CONFIG_SYNTAX for any other token.
   */
  expect(symbol: string, purpose: string): void {
    if (!this.takeIf(symbol)) this.fail(this.#token, `"${symbol}" ${purpose}`)
  }

  /** Throws a ServeError CONFIG_SYNTAX which says that `token` was got and `want` is wanted. */
  fail(token: Token, want: string): never {
    return this.failAt(token.offset, describeToken(token), want)
  }

  /** Throws a ServeError CONFIG_SYNTAX with the line and column of an offset. */
  failAt(offset: number, got: string, want: string): never {
    const { line, column } = this.positionAt(offset)
    const message = `failed to read text proto from ${this.#path}: line ${line}, column ${column}: got ${got}, want ${want}`
    throw new ServeError('CONFIG_SYNTAX', message)
  }

  /** Finds line and column of an offset in the text. Both count from 1. */
  positionAt(offset: number): { readonly line: number; readonly column: number } {
    const before = this.#text.slice(0, offset)
    const line = before.split('\n').length
    return { line, column: offset - (before.lastIndexOf('\n') + 1) + 1 }
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#offset
    return pattern.exec(this.#text)?.[0]
  }

  #read(): Token {
    for (let blank = this.#match(BLANKS); blank !== undefined; blank = this.#match(BLANKS)) {
      this.#offset += blank.length
    }
    const offset = this.#offset
    if (offset >= this.#text.length) return { kind: 'end', text: '', offset }
    const identifier = this.#match(IDENTIFIER)
    if (identifier !== undefined) return this.#make('identifier', identifier)
    const character = this.#text.charAt(offset)
    if (character === '"' || character === "'") return this.#readString(offset)
    const number = this.#match(HEX) ?? this.#match(NUMBER)
    if (number !== undefined) return this.#readNumber(number)
    if (SYMBOLS.includes(character)) return this.#make('symbol', character)
    const code = this.#text.codePointAt(offset) ?? 0
    return this.failAt(offset, describeCharacter(code), 'a token of the text format')
  }

  #make(kind: 'float' | 'identifier' | 'integer' | 'symbol', text: string): Token {
    const token = { kind, text, offset: this.#offset }
    this.#offset += text.length
    return token
  }

  #readString(offset: number): Token {
    const literal = readStringLiteral(this.#text, offset)
    if ('got' in literal) return this.failAt(literal.offset, literal.got, literal.want)
    this.#offset = literal.end
    const text = this.#text.slice(offset, literal.end)
    return { kind: 'string', text, offset, bytes: literal.bytes }
  }

  #readNumber(text: string): Token {
    const offset = this.#offset
    if (/^0[xX]/.test(text)) {
      if (text.length === 2) return this.failAt(offset, `"${text}"`, 'hexadecimal digits after 0x')
      return this.#make('integer', text)
    }
    const isFloat = /[.eE]/.test(text)
    if (!isFloat && /^0[0-9]*[89]/.test(text)) {
      return this.failAt(offset, `"${text}"`, 'octal digits after a leading 0')
    }
    const after = this.#text.charAt(offset + text.length)
    if (after === '.') return this.failAt(offset, `"${text}."`, 'a number with one decimal point')
    if (after !== 'f' && after !== 'F') return this.#make(isFloat ? 'float' : 'integer', text)
    const token = this.#make('float', text)
    this.#offset += 1
    return token
  }
}

function describeCharacter(code: number): string {
  if (code < 32) return `control character ${code}`
  if (code === 0xfeff) return 'a byte order mark, which protobuf does not read'
  return isStray(code) ? STRAY_BYTES : `"${String.fromCodePoint(code)}"`
}

/** Names a token in messages. */
function describeToken(token: Token): string {
  if (token.kind === 'end') return 'the end of the text'
  const text = token.text.length > 40 ? `${token.text.slice(0, 40)}...` : token.text
  return token.kind === 'string' ? `string ${text}` : `"${text}"`
}

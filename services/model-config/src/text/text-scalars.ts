import type { FieldDescriptor, ScalarType } from '../model/descriptor.ts'
import { enumDescriptor, enumNameOf } from '../model/message-draft.ts'
import {
  describeRange,
  INTEGER_RANGES,
  type IntegerType,
  isIntegerType,
  toIntegerInRange,
} from '../model/number-range.ts'
import type { TextLexer, Token } from './text-lexer.ts'

const TRUE = new Set(['true', 'True', 't'])
const FALSE = new Set(['false', 'False', 'f'])
const INFINITE = new Set(['inf', 'infinity'])

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Reads the value of an integer token: decimal, hexadecimal (0x) or octal (leading 0). */
function toBigInt(text: string): bigint {
  return /^0[0-7]+$/.test(text) ? BigInt(`0o${text.slice(1)}`) : BigInt(text)
}

function readInteger(lexer: TextLexer, type: IntegerType, name: string): number {
  const start = lexer.token
  const want = `${describeRange(type)} for ${name}`
  const isNegative = lexer.takeIf('-')
  const token = lexer.token
  if (token.kind !== 'integer') return lexer.fail(isNegative ? start : token, want)
  lexer.take()
  const isUnsigned = INTEGER_RANGES[type][0] === 0n
  const value = isNegative ? -toBigInt(token.text) : toBigInt(token.text)
  const number = toIntegerInRange(value, type)
  if (number === undefined || (isNegative && isUnsigned)) {
    return lexer.failAt(start.offset, `"${isNegative ? '-' : ''}${token.text}"`, want)
  }
  return number
}

function floatOf(token: Token): number | undefined {
  if (token.kind === 'float') return Number(token.text)
  if (token.kind === 'integer')
    return /^(?:0|[1-9][0-9]*)$/.test(token.text) ? Number(token.text) : undefined
  if (token.kind !== 'identifier') return undefined
  const word = token.text.toLowerCase()
  if (INFINITE.has(word)) return Number.POSITIVE_INFINITY
  return word === 'nan' ? Number.NaN : undefined
}

function readFloat(lexer: TextLexer, type: 'double' | 'float', name: string): number {
  const isNegative = lexer.takeIf('-')
  const token = lexer.token
  const value = floatOf(token)
  if (value === undefined) return lexer.fail(token, `a decimal ${type} for ${name}`)
  lexer.take()
  return isNegative ? -value : value
}

function readBool(lexer: TextLexer, name: string): boolean {
  const token = lexer.token
  if (token.kind === 'identifier' && TRUE.has(token.text)) return lexer.take() === token
  if (token.kind === 'identifier' && FALSE.has(token.text)) return lexer.take() !== token
  const value = token.kind === 'integer' ? toBigInt(token.text) : 2n
  if (value > 1n) return lexer.fail(token, `true or false for ${name}`)
  lexer.take()
  return value === 1n
}

function readString(lexer: TextLexer, name: string): string {
  const first = lexer.token
  if (first.kind !== 'string') return lexer.fail(first, `a quoted string for ${name}`)
  const bytes: number[] = []
  for (let token = lexer.token; token.kind === 'string'; token = lexer.token) {
    for (const byte of token.bytes) bytes.push(byte)
    lexer.take()
  }
  try {
    return decoder.decode(Uint8Array.from(bytes))
  } catch {
    // TextDecoder says only that the bytes are not UTF-8.
    return lexer.fail(first, `a string of valid UTF-8 for ${name}`)
  }
}

function readEnum(lexer: TextLexer, enumName: string, name: string): string {
  const values = enumDescriptor(enumName)
  const want = `one of ${Object.keys(values).join(', ')} for ${name}`
  const start = lexer.token
  if (start.kind === 'identifier') {
    if (!Object.hasOwn(values, start.text)) return lexer.fail(start, want)
    lexer.take()
    return start.text
  }
  const isNegative = lexer.takeIf('-')
  const token = lexer.token
  const found =
    token.kind === 'integer' && !isNegative
      ? enumNameOf(values, Number(toBigInt(token.text)))
      : undefined
  if (found === undefined) return lexer.fail(isNegative ? start : token, want)
  lexer.take()
  return found
}

/**
 * Reads one value of a scalar type.
 *
 * @param name - the name of the field in error texts.
 * @throws ServeError CONFIG_SYNTAX if the next token is no such value.
 */
export function readScalar(lexer: TextLexer, type: ScalarType, name: string): unknown {
  if (isIntegerType(type)) return readInteger(lexer, type, name)
  if (type === 'bool') return readBool(lexer, name)
  if (type === 'string') return readString(lexer, name)
  return readFloat(lexer, type, name)
}

/**
 * Reads one value of a scalar or enum field.
 *
 * @throws ServeError CONFIG_SYNTAX if the next token is no such value.
 */
export function readValue(
  lexer: TextLexer,
  field: Exclude<FieldDescriptor, { readonly type: 'message' }>,
): unknown {
  const name = `field "${field.name}"`
  return field.type === 'enum'
    ? readEnum(lexer, field.enum, name)
    : readScalar(lexer, field.type, name)
}

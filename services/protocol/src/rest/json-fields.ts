import { ServeError } from '@tutti/errors'
import { NAME_BYTES, tooLong } from '@tutti/formats'

/**
 * Makes the error for a JSON value of the wrong type. Triton answers it with INTERNAL, that is HTTP 500 (triton-semantics 9.15).
 */
export function jsonTypeError(context: string, problem: string): ServeError {
  return new ServeError('MALFORMED_MESSAGE', `${context}: ${problem}`, { code: 'INTERNAL' })
}

export const NON_UNSIGNED = 'attempt to access JSON non-unsigned-integer as unsigned-integer'
export const NON_SIGNED = 'attempt to access JSON non-signed-integer as signed-integer'
export const NON_BOOLEAN = 'attempt to access JSON non-boolean as boolean'
export const NON_STRING = 'attempt to access JSON non-string as string'
export const NON_NUMBER = 'attempt to access JSON non-number as double'
const NON_ARRAY = 'attempt to access JSON non-array as array'

export type JsonObject = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Makes Triton's error for a document with a number that no double holds, such as 1e400. */
export function tooBig(): ServeError {
  return new ServeError(
    'MALFORMED_MESSAGE',
    'failed to parse the request JSON buffer: Number too big to be stored in double.',
    { code: 'INTERNAL' },
  )
}

/** Reads an own member of an object; undefined if it is absent or `value` is no object. */
export function member(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

/** Reads a member that is an array. @throws ServeError MALFORMED_MESSAGE with Triton's text if it is absent or no array. */
export function memberAsArray(value: unknown, name: string): readonly unknown[] {
  const found = presentMember(value, name)
  if (!Array.isArray(found)) throw jsonTypeError(`Unable to parse '${name}'`, NON_ARRAY)
  return found
}

/**
 * Reads a member that is a name or an id.
 *
 * @throws ServeError MALFORMED_MESSAGE with Triton's text if it is absent or no string.
 */
export function memberAsString(value: unknown, name: string): string {
  return asString(presentMember(value, name), `Unable to parse '${name}'`)
}

/**
 * Checks a value that is a name or an id.
 *
 * @throws ServeError MALFORMED_MESSAGE if it is no string, MESSAGE_TOO_LARGE if it is too long.
 */
export function asString(value: unknown, context: string): string {
  if (typeof value !== 'string') throw jsonTypeError(context, NON_STRING)
  return withinBound(value)
}

/** Checks the length of a name, an id or a key, and returns it. @throws ServeError MESSAGE_TOO_LARGE */
export function withinBound(name: string): string {
  const bytes = Buffer.byteLength(name)
  if (bytes > NAME_BYTES) throw tooLong(bytes, NAME_BYTES)
  return name
}

export function asBoolean(value: unknown, context: string): boolean {
  if (typeof value !== 'boolean') throw jsonTypeError(context, NON_BOOLEAN)
  return value
}

/** Checks a size, extent or count: an integer from 0 to 2^53 - 1. @throws ServeError MALFORMED_MESSAGE for others. */
export function asSize(value: unknown, context: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw jsonTypeError(context, NON_UNSIGNED)
  }
  return value
}

/**
 * Checks how many of something are wanted, as `asSize` does. Integers up to 2^64 are accepted and become 2^53 - 1, since there
 * are never more.
 */
export function asCount(value: unknown, context: string): number {
  const isMany = typeof value === 'number' && value > Number.MAX_SAFE_INTEGER && value <= 2 ** 64
  return isMany ? Number.MAX_SAFE_INTEGER : asSize(value, context)
}

function presentMember(value: unknown, name: string): unknown {
  if (!isObject(value) || !Object.hasOwn(value, name)) {
    throw jsonTypeError(
      `Unable to parse '${name}'`,
      `attempt to access non-existing object member '${name}'`,
    )
  }
  return value[name]
}

import { ServeError } from '@tutti/errors'
import { EMPTY_CONTEXT, type Parameter, type RequestContext } from '@tutti/tensor'
import {
  MESSAGE_BOUNDS,
  ParameterBudget,
  toCorrelationText,
  tooManyEntries,
} from '../message-bounds.ts'
import { WrittenNumber } from './exact-numbers.ts'
import {
  asBoolean,
  isObject,
  type JsonObject,
  jsonTypeError,
  member,
  NON_STRING,
  NON_UNSIGNED,
  tooBig,
  withinBound,
} from './json-fields.ts'
import { memberText, memberTexts } from './json-slice.ts'
import type { JsonDocument } from './json-text.ts'

const MAX_UINT64 = 2n ** 64n - 1n
const MIN_INT64 = -(2n ** 63n)
const MAX_INT64 = 2n ** 63n - 1n

/** Result of reading the request-level `parameters`. */
export interface RestParameters {
  readonly context: RequestContext
  /** Value of `binary_data_output`: outputs come as binary data unless they say otherwise. */
  readonly isBinaryOutput: boolean
}

type Draft = RequestContext & Pick<RestParameters, 'isBinaryOutput'>

/** Keys with a meaning of their own; each reader gets the value with numbers as they were written. */
const KNOWN = new Map<string, (value: unknown) => Partial<Draft>>([
  ['sequence_id', (value) => ({ correlationId: toCorrelationId(value) })],
  ['sequence_start', (value) => ({ sequenceStart: toBoolean(value, 'sequence_start') })],
  ['sequence_end', (value) => ({ sequenceEnd: toBoolean(value, 'sequence_end') })],
  ['priority', (value) => ({ priority: toUint64(value, 'priority') })],
  ['timeout', (value) => ({ timeoutUs: toUint64(value, 'timeout') })],
  ['binary_data_output', (value) => ({ isBinaryOutput: toBoolean(value, 'binary_data_output') })],
])

/**
 * Reads the `parameters` member, with its numbers as WrittenNumber. Objects and arrays in it stay as they are: they are wrong in
 * any case, and may be large.
 *
 * @throws ServeError MESSAGE_TOO_LARGE beyond MESSAGE_BOUNDS.
 */
export function writtenParameters({ text, value, hasNames }: JsonDocument): unknown {
  const parameters = member(value, 'parameters')
  if (!isObject(parameters)) return parameters
  // Without numbers it says what its text says, and the text of a document is long.
  if (Object.values(parameters).every((plain) => typeof plain !== 'number')) {
    return withinBounds(parameters)
  }
  const written = new Map<string, unknown>()
  let count = 0
  for (const [key, source] of memberTexts(memberText(text, 'parameters') ?? '{}')) {
    // Those that come twice too: each takes time.
    count += 1
    if (count > MESSAGE_BOUNDS.parameters) throw tooManyEntries('parameters')
    if (written.has(withinBound(key))) continue
    const plain = parameters[key]
    if (isTooBig(plain) && !hasNames) throw tooBig()
    written.set(key, typeof plain === 'number' ? new WrittenNumber(source) : plain)
  }
  return Object.fromEntries(written)
}

function withinBounds(parameters: JsonObject): JsonObject {
  const keys = Object.keys(parameters)
  if (keys.length > MESSAGE_BOUNDS.parameters) throw tooManyEntries('parameters')
  keys.forEach(withinBound)
  return parameters
}

/**
 * Reads the request's parameters (triton-semantics 4.4 with the texts of the HTTP endpoint).
 *
 * @param parameters - result of `writtenParameters`; undefined if the request has none.
 * @throws ServeError MALFORMED_MESSAGE (HTTP 500) for a known key of the wrong type, MESSAGE_TOO_LARGE for keys and texts of more
 * than 512 KiB, INVALID_PARAMETER otherwise.
 */
export function parseRequestParameters(id: string, parameters: unknown): RestParameters {
  const draft: Draft = { ...EMPTY_CONTEXT, id, isBinaryOutput: false }
  const custom = new Map<string, Parameter>()
  const budget = new ParameterBudget()
  for (const [key, value] of entriesOf(parameters)) {
    budget.take(textBytes(key, value))
    const read = KNOWN.get(key)
    if (read === undefined) {
      refuseReserved(key)
      custom.set(key, toCustomParameter(key, value))
    } else Object.assign(draft, read(value))
  }
  const { isBinaryOutput, ...context } = draft
  return { context: { ...context, parameters: custom }, isBinaryOutput }
}

/** Counts the bytes of a parameter's key, and of its value if that is a text. */
export function textBytes(key: string, value: unknown): number {
  return Buffer.byteLength(key) + (typeof value === 'string' ? Buffer.byteLength(value) : 0)
}

function entriesOf(parameters: unknown): readonly (readonly [string, unknown])[] {
  if (parameters === undefined) return []
  if (!isObject(parameters)) {
    throw jsonTypeError('failed to get request params.', 'attempt to get members for non-object')
  }
  return Object.entries(parameters)
}

function refuseReserved(key: string): void {
  if (!key.startsWith('triton_')) return
  throw new ServeError(
    'INVALID_PARAMETER',
    "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
    { details: { field: `parameters.${key}` } },
  )
}

/** Checks whether JSON.parse found a number too big for a double. NaN is not one: it comes from a name. */
export function isTooBig(value: unknown): boolean {
  return value === Infinity || value === -Infinity
}

/**
 * Makes a parameter that has no meaning of its own. An integer beyond 64 bits with a sign becomes a double, as in Triton.
 *
 * @param value - with WrittenNumber for a number.
 * @throws ServeError INVALID_PARAMETER
 */
export function toCustomParameter(key: string, value: unknown): Parameter {
  if (typeof value === 'string') return { kind: 'string', value }
  if (typeof value === 'boolean') return { kind: 'bool', value }
  if (value instanceof WrittenNumber) {
    const { integer } = value
    return integer !== undefined && integer >= MIN_INT64 && integer <= MAX_INT64
      ? { kind: 'int64', value: integer }
      : { kind: 'double', value: value.double }
  }
  throw new ServeError(
    'INVALID_PARAMETER',
    `parameter '${key}' has invalid type. It should be either 'int', 'bool', or 'string'.`,
    { details: { field: `parameters.${key}` } },
  )
}

function toCorrelationId(value: unknown): bigint | string {
  const integer = value instanceof WrittenNumber ? value.integer : undefined
  if (integer !== undefined && isUint64(integer)) return integer
  if (typeof value !== 'string') throw jsonTypeError(unableToParse('sequence_id'), NON_STRING)
  return toCorrelationText(value)
}

function toBoolean(value: unknown, key: string): boolean {
  return asBoolean(value, unableToParse(key))
}

function toUint64(value: unknown, key: string): bigint {
  const integer = value instanceof WrittenNumber ? value.integer : undefined
  if (integer === undefined || !isUint64(integer)) {
    throw jsonTypeError(unableToParse(key), NON_UNSIGNED)
  }
  return integer
}

function isUint64(value: bigint): boolean {
  return value >= 0n && value <= MAX_UINT64
}

function unableToParse(key: string): string {
  return `Unable to parse '${key}'`
}

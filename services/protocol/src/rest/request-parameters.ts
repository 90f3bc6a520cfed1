import { ServeError } from '@tutti/errors'
import type { Parameter, RequestContext } from '@tutti/tensor'
import { MESSAGE_BOUNDS, toCorrelationText, tooMany } from '../message-bounds.ts'
import { WrittenNumber } from './exact-numbers.ts'
import { asBoolean, isObject, jsonTypeError, NON_STRING, NON_UNSIGNED } from './json-fields.ts'

const MAX_UINT64 = 2n ** 64n - 1n
const MIN_INT64 = -(2n ** 63n)
const MAX_INT64 = 2n ** 63n - 1n

/** What the request-level `parameters` say. */
export interface RestParameters {
  readonly context: RequestContext
  /** `binary_data_output`: outputs come as binary data unless they say otherwise. */
  readonly isBinaryOutput: boolean
}

interface Draft {
  correlationId: bigint | string
  sequenceStart: boolean
  sequenceEnd: boolean
  priority: bigint
  timeoutUs: bigint
  isBinaryOutput: boolean
  readonly custom: Map<string, Parameter>
}

/** Keys with a meaning of their own; each setter gets the value with numbers as they were written. */
const KNOWN: Readonly<Record<string, (draft: Draft, value: unknown) => void>> = {
  sequence_id: (draft, value) => {
    draft.correlationId = toCorrelationId(value)
  },
  sequence_start: (draft, value) => {
    draft.sequenceStart = asBoolean(value, unableToParse('sequence_start'))
  },
  sequence_end: (draft, value) => {
    draft.sequenceEnd = asBoolean(value, unableToParse('sequence_end'))
  },
  priority: (draft, value) => {
    draft.priority = toUint64(value, 'priority')
  },
  timeout: (draft, value) => {
    draft.timeoutUs = toUint64(value, 'timeout')
  },
  binary_data_output: (draft, value) => {
    draft.isBinaryOutput = asBoolean(value, unableToParse('binary_data_output'))
  },
}

/**
 * Reads the request's parameters (triton-semantics 4.4 with the texts of the HTTP endpoint).
 *
 * @param parameters - the `parameters` member with WrittenNumber for numbers; undefined if the request has none.
 * @throws ServeError MALFORMED_MESSAGE (HTTP 500) for a known key of the wrong type, MESSAGE_TOO_LARGE beyond
 * MESSAGE_BOUNDS, INVALID_PARAMETER otherwise.
 */
export function parseRequestParameters(id: string, parameters: unknown): RestParameters {
  const draft: Draft = {
    correlationId: 0n,
    sequenceStart: false,
    sequenceEnd: false,
    priority: 0n,
    timeoutUs: 0n,
    isBinaryOutput: false,
    custom: new Map(),
  }
  for (const [key, value] of entriesOf(parameters)) {
    const known = Object.hasOwn(KNOWN, key) ? KNOWN[key] : undefined
    if (known !== undefined) known(draft, value)
    else draft.custom.set(key, toCustomParameter(key, value))
  }
  const { custom, isBinaryOutput, ...context } = draft
  return { context: { id, ...context, parameters: custom }, isBinaryOutput }
}

function entriesOf(parameters: unknown): readonly (readonly [string, unknown])[] {
  if (parameters === undefined) return []
  if (!isObject(parameters)) {
    throw jsonTypeError('failed to get request params.', 'attempt to get members for non-object')
  }
  const entries = Object.entries(parameters)
  if (entries.length > MESSAGE_BOUNDS.parameters) throw tooMany('parameters')
  return entries
}

function toCustomParameter(key: string, value: unknown): Parameter {
  if (key.startsWith('triton_')) {
    throw new ServeError(
      'INVALID_PARAMETER',
      "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
      { details: { field: `parameters.${key}` } },
    )
  }
  if (typeof value === 'string') return { kind: 'string', value }
  if (typeof value === 'boolean') return { kind: 'bool', value }
  if (value instanceof WrittenNumber) {
    const { integer } = value
    if (integer === undefined) return { kind: 'double', value: value.double }
    if (integer >= MIN_INT64 && integer <= MAX_INT64) return { kind: 'int64', value: integer }
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

import { ServeError } from '@tutti/errors'
import type { Parameter, RequestContext } from '@tutti/tensor'
import { refuseParameter } from './refuse.ts'

const EMPTY_FINAL = 'triton_enable_empty_final_response'
/** Triton's bound for a correlation id that is a string (triton-semantics 9.11). */
const MAX_CORRELATION_ID = 128
const NO_PARAMETERS: ReadonlyMap<string, Parameter> = new Map()

/** The context of a request that says nothing about it. */
const NOTHING_SAID = {
  correlationId: 0n,
  sequenceStart: false,
  sequenceEnd: false,
  priority: 0n,
  timeoutUs: 0n,
} as const

/** What the parameters of a request say (triton-semantics 4.4). */
export interface RequestParameters {
  readonly context: RequestContext
  /** On a stream: an empty final response is delivered rather than swallowed. */
  readonly isEmptyFinalWanted: boolean
}

interface Draft {
  correlationId: bigint | string
  sequenceStart: boolean
  sequenceEnd: boolean
  priority: bigint
  timeoutUs: bigint
  isEmptyFinalWanted: boolean
}

function wrongKind(key: string, expected: string): ServeError {
  return refuseParameter(`invalid value type for '${key}' parameter, expected ${expected}.`, key)
}

function toCorrelationId(parameter: Parameter | undefined): bigint | string {
  if (parameter?.kind === 'int64') return BigInt.asUintN(64, parameter.value)
  if (parameter?.kind !== 'string') throw wrongKind('sequence_id', 'int64_param or string_param')
  if (parameter.value.length > MAX_CORRELATION_ID) {
    throw new ServeError(
      'INVALID_PARAMETER',
      `string correlation ID is ${parameter.value.length} characters long, want at most ${MAX_CORRELATION_ID}`,
      { code: 'UNIMPLEMENTED', details: { field: 'parameters.sequence_id' } },
    )
  }
  return parameter.value
}

function toBool(key: string, parameter: Parameter | undefined): boolean {
  if (parameter?.kind !== 'bool') throw wrongKind(key, 'bool_param')
  return parameter.value
}

function toPriority(parameter: Parameter | undefined): bigint {
  if (parameter?.kind !== 'int64' && parameter?.kind !== 'uint64') {
    throw wrongKind('priority', 'int64_param or uint64_param')
  }
  if (parameter.value < 0n) {
    throw refuseParameter("invalid value for 'priority', expected value >= 0.", 'priority')
  }
  return parameter.value
}

/** A negative timeout counts as 2^64 less its amount, as in Triton 2.51: in effect none. */
function toTimeout(parameter: Parameter | undefined): bigint {
  if (parameter?.kind !== 'int64') throw wrongKind('timeout', 'int64_param')
  return BigInt.asUintN(64, parameter.value)
}

const KNOWN: ReadonlyMap<string, (draft: Draft, parameter: Parameter | undefined) => void> =
  new Map([
    [
      'sequence_id',
      (draft, parameter) => {
        draft.correlationId = toCorrelationId(parameter)
      },
    ],
    [
      'sequence_start',
      (draft, parameter) => {
        draft.sequenceStart = toBool('sequence_start', parameter)
      },
    ],
    [
      'sequence_end',
      (draft, parameter) => {
        draft.sequenceEnd = toBool('sequence_end', parameter)
      },
    ],
    [
      'priority',
      (draft, parameter) => {
        draft.priority = toPriority(parameter)
      },
    ],
    [
      'timeout',
      (draft, parameter) => {
        draft.timeoutUs = toTimeout(parameter)
      },
    ],
    [
      EMPTY_FINAL,
      (draft, parameter) => {
        draft.isEmptyFinalWanted = toBool(EMPTY_FINAL, parameter)
      },
    ],
  ])

function toCustom(key: string, parameter: Parameter | undefined): Parameter {
  if (key.startsWith('triton_')) {
    throw refuseParameter(
      `parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with 'triton_' are allowed: ${EMPTY_FINAL}`,
      key,
    )
  }
  if (parameter === undefined || parameter.kind === 'uint64') {
    throw wrongKind(key, 'int64_param, bool_param, or string_param')
  }
  return parameter
}

/**
 * Reads the parameters of a request: those with a meaning of their own, and the custom ones, which travel to every step.
 *
 * @param parameters - undefined values stand for keys without a value.
 * @throws ServeError INVALID_PARAMETER with Triton's text.
 */
export function readRequestParameters(
  id: string,
  parameters: ReadonlyMap<string, Parameter | undefined>,
): RequestParameters {
  if (parameters.size === 0) {
    return {
      context: { id, ...NOTHING_SAID, parameters: NO_PARAMETERS },
      isEmptyFinalWanted: false,
    }
  }
  const draft: Draft = { ...NOTHING_SAID, isEmptyFinalWanted: false }
  let custom: Map<string, Parameter> | undefined
  for (const [key, parameter] of parameters) {
    const read = KNOWN.get(key)
    if (read !== undefined) read(draft, parameter)
    else {
      custom ??= new Map()
      custom.set(key, toCustom(key, parameter))
    }
  }
  const { isEmptyFinalWanted, ...known } = draft
  return { context: { id, ...known, parameters: custom ?? NO_PARAMETERS }, isEmptyFinalWanted }
}

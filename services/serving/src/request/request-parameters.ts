import type { ServeError } from '@tutti/errors'
import { toCorrelationText, type WireParameters } from '@tutti/protocol'
import { EMPTY_CONTEXT, type Parameter, type RequestContext } from '@tutti/tensor'
import { refuseParameter } from './refuse.ts'

const EMPTY_FINAL = 'triton_enable_empty_final_response'

/** The meaning of the parameters of a request (triton-semantics 4.4). */
export interface RequestParameters {
  readonly context: RequestContext
  /** On a stream: an empty final response is delivered rather than swallowed. */
  readonly isEmptyFinalWanted: boolean
}

type Draft = RequestContext & Pick<RequestParameters, 'isEmptyFinalWanted'>

function wrongKind(key: string, expected: string): ServeError {
  return refuseParameter(`invalid value type for '${key}' parameter, expected ${expected}.`, key)
}

function toCorrelationId(parameter: Parameter | undefined): bigint | string {
  if (parameter?.kind === 'int64') return BigInt.asUintN(64, parameter.value)
  if (parameter?.kind !== 'string') throw wrongKind('sequence_id', 'int64_param or string_param')
  return toCorrelationText(parameter.value)
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

/** Converts a timeout. A negative one counts as 2^64 less its amount, as in Triton 2.51: in effect none. */
function toTimeout(parameter: Parameter | undefined): bigint {
  if (parameter?.kind !== 'int64') throw wrongKind('timeout', 'int64_param')
  return BigInt.asUintN(64, parameter.value)
}

const KNOWN = new Map<string, (parameter: Parameter | undefined) => Partial<Draft>>([
  ['sequence_id', (parameter) => ({ correlationId: toCorrelationId(parameter) })],
  ['sequence_start', (parameter) => ({ sequenceStart: toBool('sequence_start', parameter) })],
  ['sequence_end', (parameter) => ({ sequenceEnd: toBool('sequence_end', parameter) })],
  ['priority', (parameter) => ({ priority: toPriority(parameter) })],
  ['timeout', (parameter) => ({ timeoutUs: toTimeout(parameter) })],
  [EMPTY_FINAL, (parameter) => ({ isEmptyFinalWanted: toBool(EMPTY_FINAL, parameter) })],
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

/** Reads parameters of which there is at least one. @throws ServeError INVALID_PARAMETER with Triton's text. */
export function readGivenParameters(id: string, parameters: WireParameters): RequestParameters {
  const draft: Draft = { ...EMPTY_CONTEXT, id, isEmptyFinalWanted: false }
  const custom = new Map<string, Parameter>()
  for (const [key, parameter] of parameters) {
    const read = KNOWN.get(key)
    if (read === undefined) custom.set(key, toCustom(key, parameter))
    else Object.assign(draft, read(parameter))
  }
  const { isEmptyFinalWanted, ...context } = draft
  return { context: { ...context, parameters: custom }, isEmptyFinalWanted }
}

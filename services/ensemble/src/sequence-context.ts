import { ServeError } from '@tutti/errors'
import type { Parameter, Parameters, RequestContext } from '@tutti/tensor'

const NO_PARAMETERS: Parameters = new Map()

/**
 * The context that a step's outputs carry to the steps that read them: the step's own, unless its response sets a
 * sequence parameter. Then flags that it does not mention become false, and an id that it does not mention stays.
 *
 * @throws ServeError RESPONSE_INVALID (INVALID_ARGUMENT, Triton's text) if a parameter has the wrong kind.
 * @see triton-semantics 1.7
 */
export function overrideSequence(context: RequestContext, parameters: Parameters): RequestContext {
  if (parameters.size === 0) return context
  const id = parameters.get('sequence_id')
  const start = parameters.get('sequence_start')
  const end = parameters.get('sequence_end')
  if (id === undefined && start === undefined && end === undefined) return context
  return {
    ...context,
    correlationId: correlationId(id) ?? context.correlationId,
    sequenceStart: flag('sequence_start', start),
    sequenceEnd: flag('sequence_end', end),
  }
}

/**
 * The parameters of an ensemble response.
 *
 * @param made - the context that the first output of the response that a step made carries; absent if there is none.
 * @see triton-semantics 1.7 and 9.5
 */
export function responseParameters(
  request: RequestContext,
  made: RequestContext | undefined,
): Parameters {
  if (made === undefined) return NO_PARAMETERS
  const { correlationId: id, sequenceStart, sequenceEnd } = made
  const asText = typeof request.correlationId === 'string' || typeof id === 'string'
  return new Map<string, Parameter>([
    [
      'sequence_id',
      asText
        ? { kind: 'string', value: String(id) }
        : { kind: 'int64', value: BigInt.asIntN(64, id) },
    ],
    ['sequence_start', { kind: 'bool', value: sequenceStart }],
    ['sequence_end', { kind: 'bool', value: sequenceEnd }],
  ])
}

function correlationId(parameter: Parameter | undefined): bigint | string | undefined {
  if (parameter === undefined) return undefined
  if (parameter.kind === 'string') return parameter.value
  if (parameter.kind === 'int64') return BigInt.asUintN(64, parameter.value)
  throw wrongKind(
    "expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or TRITONSERVER_PARAMETER_STRING",
  )
}

function flag(name: string, parameter: Parameter | undefined): boolean {
  if (parameter === undefined) return false
  if (parameter.kind === 'bool') return parameter.value
  throw wrongKind(`expect parameter '${name}' to be TRITONSERVER_PARAMETER_BOOL`)
}

function wrongKind(message: string): ServeError {
  return new ServeError('RESPONSE_INVALID', message, { code: 'INVALID_ARGUMENT' })
}
